"""`check` says what a run sends to a server, and sends nothing for it but the probe."""

from __future__ import annotations

import json

import pytest

import recollect as rc
from recollect.models.endpoint.probe import MOST_REQUESTS

pytestmark = pytest.mark.loopback


@pytest.fixture
def plan(tmp_path):
    """A plan of a server, with prices and a budget."""
    for name in ("audited", "controls"):
        rows = [{"id": f"{name}{i}", "user": f"{name}{i}", "text": f"the {name} cat and {i} dogs"} for i in range(30)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def written(url, **options):
        target = {"model": url, **options}
        corpora = {"audited": "audited.jsonl", "controls": "controls.jsonl"}
        path = tmp_path / "plan.yaml"
        path.write_text(
            json.dumps({"models": {"target": target}, "corpora": corpora, "audits": {"membership": {"signal": "loss"}}})
        )
        return path

    return written


def test_requests_tokens_and_cost_are_told_before_and_kept_to(serve, plan):
    server = serve(shows="prompt_logprobs")
    path = plan(server.url, price_input=1000.0, price_output=2000.0, budget_cost=100.0)
    (forecast,) = rc.check(path)
    assert server.received <= MOST_REQUESTS
    told, probed = forecast.servers["target"], server.received
    assert (told.host, told.spent_requests) == (f"127.0.0.1:{server.port}", probed)
    assert told.cost > 0
    assert told.excess is None
    (result,) = rc.run(path)
    resumed = 1 + 2 + 2  # the list of models, and the probe's texts as tokens and scores
    assert server.received - probed <= told.requests + resumed
    assert result.provenance.models["target"].endpoint.url == server.url.partition("#")[0]
    note = next(note for note in result.notes if note.code == "texts_sent_to_server")
    assert f"127.0.0.1:{server.port}" in note.text
    assert "noise floor" in result.findings[0].method


def test_a_plan_stops_at_its_budget_with_a_failed_audit(serve, plan):
    server = serve(shows="prompt_logprobs")
    path = plan(server.url, budget_requests=45)
    (forecast,) = rc.check(path)
    assert "--budget-requests" in forecast.servers["target"].excess
    (result,) = rc.run(path)
    assert server.received <= 45
    assert "--budget-requests" in result.failed[0].error
