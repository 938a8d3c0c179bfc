"""A budget is reserved before anything is sent, and what was under way at the end of a run counts as spent."""

from __future__ import annotations

import pytest

from recollect.errors import PlanError
from recollect.models.endpoint.ledger import Charge, Ledger
from recollect.models.endpoint.settings import Budget, EndpointSettings, Prices
from recollect.testing.refusals import refused

SMALL = Charge(input_tokens=10, output_tokens=1)


@pytest.mark.parametrize(
    ("budget", "sent"),
    [
        (Budget(requests=3), 3),
        (Budget(tokens=33), 3),
        (Budget(tokens=32), 2),
        (Budget(cost=0.9), 2),
        (Budget(requests=0), 0),
    ],
)
def test_reservations_stop_at_each_limit(tmp_path, budget, sent):
    ledger, prices = Ledger(tmp_path, "server"), Prices(input_tokens=10_000, output_tokens=300_000)
    for _ in range(sent):
        ledger.reserve(SMALL, budget, prices)
    with refused("budget_spent") as refusal:
        ledger.reserve(SMALL, budget, prices)
    assert refusal.error.final
    assert ledger.spent.requests == sent


def test_what_was_not_settled_counts_as_it_was_reserved(tmp_path):
    first = Ledger(tmp_path, "server")
    settled, lost = (first.reserve(SMALL, Budget(), Prices()) for _ in range(2))
    first.settle(settled, Charge(input_tokens=4, output_tokens=1))
    del first
    again = Ledger(tmp_path, "server")
    assert (lost, again.spent) == (1, Charge(requests=2, input_tokens=14, output_tokens=2))
    assert again.reserve(SMALL, Budget(), Prices()) == 2


def test_models_of_one_server_share_a_ledger(tmp_path):
    one = Ledger.share(tmp_path, "server")
    assert Ledger.share(tmp_path, "server") is one
    with refused("journal_in_use"):
        Ledger(tmp_path, "server")


def test_a_budget_in_money_needs_prices():
    with pytest.raises(PlanError):
        EndpointSettings(budget=Budget(cost=1.0))


@pytest.mark.loopback
@pytest.mark.parametrize(("shows", "count"), [("forced", 8), ("prompt_logprobs", 30)])
def test_a_run_stops_at_its_budget_and_resumes_with_a_raised_one(serve, load, shows, count):
    from recollect.corpora.record import Record

    server = serve(shows=shows, error_rate=0.1)
    records = [Record(id=str(i), text=f"the cat and {i} dogs met") for i in range(count)]
    budget = 95 if shows == "forced" else 70
    model = load(server, budget=Budget(requests=budget), connections=8)
    with refused("budget_spent") as refusal:
        model.answer(records)
    assert server.received <= budget
    assert "--budget-requests" in refusal.error.found
    completions = server.answered.total()
    model = load(server, budget=Budget(requests=5000), connections=8)
    answers = model.answer(records)
    assert answers.rows == sum(len(server.model.score(record.text)) for record in records)
    assert completions > 0
    assert model.spent.requests == server.received


@pytest.mark.loopback
def test_tokens_are_counted_as_the_server_counts_them(serve, load):
    server = serve(shows="prompt_logprobs")
    model = load(server)
    before = model.spent
    from recollect.corpora.record import Record

    record = Record(id="one", text="the cat")
    model.answer([record])
    probe = sum(
        len(server.model.encode(text))
        for text in __import__("recollect.models.endpoint.probe", fromlist=["TEXTS"]).TEXTS
    )
    assert model.spent.input_tokens - before.input_tokens == len(server.model.encode("the cat")) + probe
