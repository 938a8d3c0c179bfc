"""Kills, faults and budgets at once: nothing is lost, no budget is exceeded, no number is wrong; the server counts."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from recollect.digests import digest
from recollect.models.endpoint.ledger import Ledger

pytestmark = pytest.mark.loopback
CLIENT = Path(__file__).with_name("killed_client.py")
WORDS = ["the cat", "a dog and", "stones of the sea", "in town", "the mill on", "a street at", "rings", "or bread"]
TEXTS = [f"{WORDS[i % 8]} {WORDS[(i * 3 + 1) % 8]} {i} {WORDS[(i * 5 + 2) % 8]}" for i in range(24)]


@pytest.fixture
def start(tmp_path):
    """Starts clients that score all texts."""
    (tmp_path / "texts.json").write_text(json.dumps(TEXTS))

    def started(server, *, budget, connections=8):
        words = [sys.executable, str(CLIENT), server.url, str(tmp_path / "work"), str(budget), str(connections)]
        words.append(str(tmp_path / "texts.json"))
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603

    return started


def kill_after(client, server, count):
    """Kill a client once the server has received so many more requests, unless it has ended by then."""
    goal = server.received + count
    while client.poll() is None and server.received < goal:
        time.sleep(0.002)
    client.kill()
    client.wait()


def wait_for(client):
    """What a client wrote, and what it complained of."""
    said, complaint = client.communicate(timeout=300)
    return said, complaint


def expect(server):
    """The log-probabilities of all texts."""
    return [row[0] for text in TEXTS for row in server.model.score(text)]


def count_repeated(server, probes):
    """Completions that were answered more than once, those of the probe apart."""
    return sum(count - 1 for key, count in server.answered.items() if count > 1 and key not in probes)


def run_with_kills(server, start, *, kills, connections):
    """Score all texts with so many kills; what was answered twice must have been under way at a kill."""
    rng = np.random.default_rng(1)
    for _ in range(kills):
        client = start(server, budget=10**6, connections=connections)
        kill_after(client, server, int(rng.integers(5, 150)))
    said, complaint = wait_for(start(server, budget=10**6, connections=connections))
    assert complaint == ""
    return json.loads(said)


@pytest.mark.parametrize(
    ("shows", "kills"),
    [
        ("prompt_logprobs", 1),
        pytest.param("forced", 20, marks=pytest.mark.slow),
        pytest.param("prompt_logprobs", 20, marks=pytest.mark.slow),
    ],
)
def test_kills_among_failures_lose_nothing_and_only_what_was_under_way_is_paid_again(
    serve, start, load, tmp_path, shows, kills
):
    behaviour = {"shows": shows, "error_rate": 0.3, "retry_after": 0.01}
    probed = serve(shows=shows)
    load(probed, work=tmp_path / "other")
    server = serve(**behaviour)
    logprobs = run_with_kills(server, start, kills=kills, connections=8)
    assert np.allclose(logprobs, expect(server), atol=1e-6)
    repeated = count_repeated(server, set(probed.answered))
    assert repeated <= 8 * kills
    url = server.url.partition("#")[0]
    ledger = Ledger.share(tmp_path / "work" / "endpoints" / digest(url), url)
    assert ledger.spent.requests >= server.received
    assert ledger.spent.requests - server.received <= 8 * kills  # reserved, and killed before it was sent


@pytest.mark.slow
@pytest.mark.parametrize("kills", [2, 20])
def test_a_budget_is_never_exceeded_with_eight_connections_and_kills(serve, start, kills):
    server = serve(shows="forced", error_rate=0.1)
    budget, rng = 220, np.random.default_rng(2)
    for _ in range(kills):
        client = start(server, budget=budget)
        kill_after(client, server, int(rng.integers(10, 60)))
        assert server.received <= budget
    for _ in range(2):
        said, complaint = wait_for(start(server, budget=budget))
        assert (said, complaint.startswith(("budget_spent", "scoring_failed"))) == ("", True)
        assert "--budget-requests" in complaint
        assert server.received <= budget
    assert server.received >= budget - 9 * kills - 1  # and it is used, but for what a kill took


@pytest.mark.slow
def test_a_raised_budget_resumes_where_the_first_one_ended(serve, start):
    server = serve(shows="prompt_logprobs")
    said, complaint = wait_for(start(server, budget=40))
    assert (said, "--budget-requests" in complaint) == ("", True)
    spent = server.received
    said, complaint = wait_for(start(server, budget=1000))
    assert complaint == ""
    assert np.allclose(json.loads(said), expect(server), atol=1e-6)
    assert spent <= 40
    assert server.most_at_once <= 8


@pytest.mark.slow
def test_a_server_that_is_restarted_as_another_model_is_noticed_by_the_next_run(serve, start):
    server = serve(shows="prompt_logprobs")
    client = start(server, budget=10**6)
    kill_after(client, server, 60)
    server.model = type(server.model)(seed=5)
    said, complaint = wait_for(start(server, budget=10**6))
    assert complaint == ""
    assert np.allclose(json.loads(said), expect(server), atol=1e-6)
