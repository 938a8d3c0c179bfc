"""Findings and results: nothing travels without interval, counts, method and reading, and no NaN gets through."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from recollect.errors import NotEnoughData
from recollect.results import Failed, Finding, Note, Provenance, Result, Skipped, build_summary_rows
from recollect.stats import auc, mean, proportion
from recollect.stats.intervals import Estimate, Interval

WHOLE = {
    "name": "leakage_epsilon",
    "value": 4.6,
    "interval": (3.9, 5.2),
    "confidence": 0.95,
    "unit": "nats",
    "n": {"users": 300, "sequences": 57},
    "method": "bootstrap over users",
    "reading": "0 means no more than others.",
}


def finding(**changes):
    return Finding.model_validate({**WHOLE, **changes})


def result(**changes):
    fields = {"audit": "leakage", "question": "Whose?", "verdict": "Nobody's.", "outcome": "not_found"}
    return Result.model_validate({**fields, **changes})


def test_a_finding_keeps_what_stats_gave_together():
    estimate = auc(np.array([3.0, 4.0, 2.5]), np.array([1.0, 2.0, 2.7]))
    made = Finding.of(estimate, name="auc", unit="probability", reading="0.5 is chance.")
    assert made.value == estimate.value
    assert made.interval == (estimate.interval.low, estimate.interval.high)
    assert made.n == estimate.n
    assert made.estimate == estimate


def test_a_finding_without_interval_says_why():
    made = Finding.of(mean([2.0, 2.0]), name="mean", unit="nats", reading="…")
    assert made.interval is None
    assert "same value" in made.why_no_interval
    assert made.confidence is None
    assert made.estimate.interval is None


def test_an_open_end_of_an_interval_is_null():
    bound = Estimate(value=0.7, interval=Interval(0.7, math.inf, 0.95), n={"canaries": 100}, method="one run")
    made = Finding.of(bound, name="epsilon", unit="nats", reading="At least.")
    assert made.interval == (0.7, None)
    assert made.estimate == bound


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"interval": None, "confidence": None}, "either an interval or why_no_interval"),
        ({"why_no_interval": "none"}, "not both"),
        ({"confidence": None}, "confidence is given with an interval"),
        ({"interval": (5.0, 3.0)}, "above the upper"),
        ({"interval": (None, None)}, "says nothing"),
        ({"value": math.nan}, "finite"),
        ({"value": math.inf}, "finite"),
        ({"interval": (math.nan, 1.0)}, "finite"),
        ({"confidence": 95}, "less than 1"),
        ({"n": {}}, "at least 1 item"),
        ({"n": {"users": -1}}, "greater than or equal to 0"),
        ({"reading": ""}, "at least 1 character"),
        ({"name": "Has Spaces"}, "pattern"),
        ({"intervall": 3}, "Extra inputs"),
    ],
)
def test_half_a_finding_is_refused(changes, message):
    with pytest.raises(ValidationError, match=message):
        finding(**changes)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_must_be_skipped_with_a_reason(value):
    with pytest.raises(NotEnoughData, match=f"epsilon came out as {value}"):
        Finding.of(Estimate(value=value, interval=None, n={"a": 1}, method="m"), name="epsilon", unit="u", reading="r")


def test_numbers_of_numpy_are_taken():
    made = finding(value=np.float64(2.5), n={"users": np.int64(3)}, interval=(np.float32(2), np.float64(3)))
    assert json.loads(made.model_dump_json())["n"] == {"users": 3}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"findings": [finding(), finding()]}, "same name"),
        ({"settings": {"limit": math.inf}}, "JSON compliant|finite"),
        ({"settings": {"rng": np.random.default_rng(0)}}, "JSON"),
        ({"tables": {"a": "/etc/passwd"}}, "pattern"),
        ({"tables": {"a": "tables/leakage/../../x.parquet"}}, "pattern"),
        ({"audit": "../up"}, "pattern"),
        ({"outcome": "green"}, "not_found"),
        ({"verdict": ""}, "at least 1 character"),
    ],
)
def test_a_result_that_would_mislead_is_refused(changes, message):
    with pytest.raises(ValidationError, match=message):
        result(**changes)


def test_nothing_vanishes():
    kept = result(
        skipped=[
            Skipped(audit="leakage", finding="epsilon", code="too_few", reason="The model shows no log-probabilities.")
        ],
        failed=[Failed(audit="exposure", code="broke", error="Out of memory.")],
        dropped={"empty_text": 3},
        notes=[
            Note(code="distinguishable_without_model", text="Members and others can be told apart without the model.")
        ],
    )
    document = json.loads(kept.model_dump_json())
    assert document["skipped"][0]["finding"] == "epsilon"
    assert document["failed"][0]["error"] == "Out of memory."
    assert document["dropped"] == {"empty_text": 3}
    assert Result.model_validate(document) == kept


def test_results_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        result().verdict = "Everybody's."


def test_tables_travel_with_the_result_but_not_into_its_json():
    table = pa.table({"user": ["ann"], "leaks": [3]})
    made = result(findings=[finding()]).with_tables(sequences=table).with_tables(users=table)
    assert made.tables == {
        "sequences": "tables/leakage/sequences.parquet",
        "users": "tables/leakage/users.parquet",
    }
    assert made.tables_in_memory == {"sequences": table, "users": table}
    assert "_held" not in made.model_dump()
    provenance = Provenance(recollect="0.1.0", seed=0, queries=3, seconds=1.5)
    later = pickle.loads(pickle.dumps(made.with_provenance(provenance)))  # noqa: S301 - as it travels from a worker
    assert later.tables_in_memory == made.tables_in_memory
    assert later.provenance == provenance
    assert result().tables_in_memory == {}


def test_findings_are_found_by_name():
    made = result(findings=[finding(), finding(name="auc", value=0.5)])
    assert made.finding("auc").value == 0.5


def test_summary_rows_are_words():
    rows = build_summary_rows(
        result(
            findings=[
                finding(),
                finding(name="recall", value=12345.678, interval=(0.00001, None)),
                finding(name="peak", interval=None, confidence=None, why_no_interval="a maximum"),
                finding(name="rank", interval=(None, 0.0)),
            ]
        )
    )
    assert rows[0].value == "4.6 nats"
    assert rows[0].interval == "3.9–5.2 (95 % confidence)"
    assert rows[0].both == "4.6 nats (3.9–5.2)"
    assert rows[0].n == "300 users, 57 sequences"
    assert rows[0].reading == "0 means no more than others."
    assert (rows[1].value, rows[1].interval) == ("12,346 nats", "at least 1e-05 (95 % confidence)")
    assert rows[2].interval == "none: a maximum"
    assert rows[3].interval == "at most 0 (95 % confidence)"


def test_estimates_of_two_runs_can_be_subtracted():
    from recollect.stats import weighted_sum

    before = Finding.of(proportion([1] * 90 + [0] * 10), name="recall", unit="share", reading="r")
    after = Finding.of(proportion([1] * 10 + [0] * 90), name="recall", unit="share", reading="r")
    fall = weighted_sum([(1, before.estimate), (-1, after.estimate)], n={"before": 100, "after": 100})
    assert Finding.of(fall, name="recall_fall", unit="share", reading="r").interval[0] > 0.6
