"""Two runs side by side."""

import math

import numpy as np
import pytest

from recollect.results.comparison import compare_runs, compute_difference_interval
from recollect.results.result import Finding, Provenance, Result
from recollect.stats.intervals import proportion
from recollect.stats.significance import binomial_p


def finding(name, value, interval, **more):
    why = None if interval is not None else "It is counted."
    return Finding(
        name=name,
        value=value,
        interval=interval,
        confidence=None if interval is None else 0.95,
        why_no_interval=why,
        unit="share",
        n={"users": 10},
        method="by hand",
        reading="A number.",
        **more,
    )


def result(*findings, corpus="0" * 32, **settings):
    made = Result(
        audit="leakage", question="What?", verdict="So.", outcome="found", findings=findings, settings=settings
    )
    return made.with_provenance(Provenance(recollect="1", corpus=corpus, seed=0, queries=1, seconds=1.0))


def test_a_difference_is_after_minus_before_with_its_interval():
    before = result(finding("auc", 0.8, (0.7, 0.84)), finding("count", 3, None), finding("gone", 1, None))
    after = result(finding("auc", 0.5, (0.45, 0.58)), finding("count", 5, None), finding("new", 1, None))
    found = compare_runs({"leakage": before}, {"leakage": after})
    auc, count = found.differences
    assert auc.value == pytest.approx(-0.3)
    assert auc.interval == pytest.approx((-0.3 - math.hypot(0.05, 0.04), -0.3 + math.hypot(0.08, 0.1)))
    assert auc.differs is True
    assert (count.value, count.interval, count.differs) == (2, None, None)
    assert found.missing == (
        "leakage: only the first run has gone.",
        "leakage: only the second run has new.",
    )


def test_what_differs_besides_the_model_is_reported():
    before, after = result(top_k=1), result(corpus="1" * 32, top_k=3)
    found = compare_runs({"leakage": before, "removal": before}, {"leakage": after})
    assert any("settings differ (top_k)" in note for note in found.notes)
    assert any("corpora differ" in note for note in found.notes)
    assert found.missing == ("Only the first run has the removal audit.",)


def test_numbers_in_different_units_are_not_compared_and_it_is_reported():
    before, after = (
        result(finding("loss", 1, None)),
        result(finding("loss", 1, None).model_copy(update={"unit": "bits"})),
    )
    found = compare_runs({"leakage": before}, {"leakage": after})
    assert found.differences == ()
    assert "leakage: loss is in share and in bits: no difference." in found.notes


@pytest.mark.parametrize("open_end", [(None, 0.5), (0.1, None)])
def test_open_intervals_are_not_combined(open_end):
    assert compute_difference_interval(finding("a", 0.3, open_end), finding("a", 0.3, (0.1, 0.5))) is None


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.5), (0.1, 0.1), (0.7, 0.4)])
def test_intervals_of_differences_cover_as_often_as_they_claim(first, second):
    rng, runs, misses = np.random.default_rng(0), 400, 0
    for _ in range(runs):
        one, other = (
            Finding.of(proportion(rng.random(60) < rate, of="users"), name="x", unit="share", reading="A share.")
            for rate in (first, second)
        )
        low, high = compute_difference_interval(one, other)
        misses += not low <= second - first <= high
    assert binomial_p(misses, runs, 0.05) > 0.001
