"""Two runs side by side."""

import math

import numpy as np
import pytest

from recollect.results.comparison import compare_runs, compute_difference_interval
from recollect.results.result import Finding, Provenance, Result, Withheld
from recollect.stats.auc import auc
from recollect.stats.intervals import mean, proportion
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


def result(*findings, corpus="0" * 32, digests=None, version="1", code=None, withheld=(), **settings):
    made = Result(
        audit="leakage",
        question="What?",
        verdict="So.",
        outcome="inconclusive" if code else "found",
        outcome_code=code,
        findings=findings,
        withheld=withheld,
        settings=settings,
    )
    return made.with_provenance(
        Provenance(recollect=version, corpus=corpus, digests=digests or {}, seed=0, queries=1, seconds=1.0)
    )


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


def test_two_runs_of_equal_models_rarely_differ_in_any_of_many_findings():
    rng, runs, misses = np.random.default_rng(4), 200, 0
    for _ in range(runs):
        one, other = (
            result(
                *(
                    Finding.of(mean(rng.normal(0, 1, 20)), name=f"mean_{i}", unit="nats", reading="A mean.")
                    for i in range(20)
                )
            )
            for _ in range(2)
        )
        misses += any(each.differs for each in compare_runs({"leakage": one}, {"leakage": other}).differences)
    assert binomial_p(misses, runs, 0.05) > 0.001, misses / runs


def test_runs_in_which_people_change_sides_rarely_differ_by_luck():
    rng, runs, misses, half = np.random.default_rng(5), 200, 0, 40
    for _ in range(runs):
        people = rng.normal(0, 1, 2 * half)
        one, other = (people + rng.normal(0, 0.2, 2 * half) for _ in range(2))
        found = [
            result(
                Finding.of(auc(ours, theirs), name="auc", unit="probability", reading="AUC."), digests={"members": m}
            )
            for ours, theirs, m in ((one[:half], one[half:], "1" * 32), (other[half:], other[:half], "2" * 32))
        ]
        compared = compare_runs(*({"leakage": each} for each in found))
        assert any("different sides" in note for note in compared.notes)
        misses += bool(compared.differences[0].differs)
    assert binomial_p(misses, runs, 0.05) > 0.001, misses / runs


def test_a_corpus_in_another_role_counts_as_people_who_change_sides():
    before = result(finding("auc", 0.6, (0.5, 0.7)), corpus="0" * 32, digests={"controls": "1" * 32})
    after = result(finding("auc", 0.5, (0.4, 0.6)), corpus="1" * 32, digests={"controls": "0" * 32})
    found = compare_runs({"leakage": before}, {"leakage": after})
    assert found.differences[0].interval == pytest.approx((-0.3, 0.1))


def test_other_data_other_versions_and_withheld_or_inconclusive_runs_are_reported():
    before = result(finding("auc", 0.6, (0.5, 0.7)), digests={"controls": "1" * 32})
    withheld = Withheld(finding="auc", code="not_comparable", reason="They differ.")
    after = result(digests={"controls": "2" * 32}, version="2", code="not_comparable", withheld=(withheld,))
    found = compare_runs({"leakage": before}, {"leakage": after})
    notes = "\n".join(found.notes)
    assert "these data differ as well: controls" in notes
    assert "versions 1 and 2" in notes
    assert "the second run is inconclusive (not_comparable)" in notes
    assert found.missing == ("leakage: only the first run has auc (in the other it is withheld: not_comparable).",)
