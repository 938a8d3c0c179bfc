"""The placebo: it passes where the audit holds its level, fails where it does not, and says when it proves nothing."""

import re

import numpy as np
import pytest

from recollect.audits.common.amounts import Piece, Unit
from recollect.audits.common.matching import match_units
from recollect.audits.common.placebo import _count_naming_runs, judge_alarms, run_placebo
from recollect.stats.significance import conformal_p, holm
from recollect.stats.two_sample_tests import mann_whitney

ALPHA = 0.05


def people(name, count, records, tokens=10):
    return [
        Unit(name=f"{name}{i}", pieces=tuple(Piece(record=f"{name}{i}-{j}", tokens=tokens) for j in range(records)))
        for i in range(count)
    ]


def list_units(amounts):
    return [
        Unit(
            name=name,
            pieces=tuple(
                Piece(record=amounts.pieces[j], tokens=int(amounts.tokens[j]))
                for j in np.flatnonzero(amounts.unit_of == i)
            ),
        )
        for i, name in enumerate(amounts.units)
    ]


class Scored:
    """Scores of records: of each user a level, of each record noise with heavy tails."""

    def __init__(self, seed):
        self.rng, self.values, self.levels = np.random.default_rng(seed), {}, {}

    def mean(self, unit):
        level = self.levels.setdefault(unit.name, self.rng.normal(0, 0.3))
        return np.mean([self.values.setdefault(p.record, level + self.rng.standard_t(2)) for p in unit.pieces])

    def whole(self, run):
        """As audits decided before matching: means over different numbers of records beside each other."""
        return [[self.mean(unit) for unit in list_units(side)] for side in (run.audited, run.controls)]

    def matched(self, run):
        played, others = list_units(run.audited), list_units(run.controls)
        fewest = min(len(unit.pieces) for unit in played)
        cut = [Unit(name=unit.name, pieces=unit.pieces[:fewest]) for unit in others]
        return [[self.mean(unit) for unit in side] for side in (played, cut)]


def names_somebody(sides, alpha=ALPHA):
    return bool(holm(conformal_p(*sides)).min() <= alpha)


def differs_as_group(sides):
    return mann_whitney(*sides).p <= ALPHA


@pytest.mark.parametrize(
    ("k", "decide"), [(1, names_somebody), (3, names_somebody), (3, differs_as_group), (20, differs_as_group)]
)
def test_a_pipeline_that_holds_its_level_passes(k, decide):
    scored = Scored(k)
    matching = match_units(people("a", k, 2), people("c", 100, 12), seed=0)
    placebo = run_placebo(matching, lambda run: decide(scored.matched(run)), seed=0, alpha=ALPHA, runs=50)
    assert placebo.status == "passed"
    assert placebo.runs == 50


def test_a_mean_of_two_beside_means_of_thirty_fails():
    scored = Scored(0)
    matching = match_units(people("a", 20, 2), people("c", 200, 30), seed=0)
    placebo = run_placebo(matching, lambda run: names_somebody(scored.whole(run), 0.2), seed=0, alpha=0.2, runs=50)
    assert placebo.status == "failed"
    assert placebo.false_positive_rate > 0.5
    assert placebo.interval[0] > 0.2
    assert "exceed" in placebo.reason


def test_playing_controls_have_what_the_audited_have():
    audited = [*people("a", 3, 2), *people("b", 3, 7, tokens=4)]
    seen = []
    run_placebo(
        match_units(audited, people("c", 80, 12), seed=0),
        lambda run: bool(seen.append(run)),
        seed=0,
        alpha=ALPHA,
        runs=20,
    )
    for run in seen:
        played, others = list_units(run.audited), list_units(run.controls)
        amounts = sorted((len(unit.pieces), sum(p.tokens for p in unit.pieces)) for unit in played)
        assert [count for count, _ in amounts] == [2, 2, 2, 7, 7, 7]
        assert [total for _, total in amounts] == pytest.approx([20] * 3 + [28] * 3, rel=0.1)
        names = set(run.audited.units)
        assert len(names) == 6
        assert not names & set(run.controls.units)
        assert len(run.controls) == 74
        assert {len(unit.pieces) for unit in others} == {12}


@pytest.mark.parametrize("controls", [2, 19, 20])
def test_too_few_controls_prove_nothing(controls):
    matching = match_units(people("a", 1, 2), people("c", controls, 2), seed=0)
    placebo = run_placebo(matching, lambda run: False, seed=0, alpha=ALPHA)
    assert placebo.status == "not_run"
    assert "at least 21 are needed" in placebo.reason


def test_a_placebo_says_as_how_many_independent_runs_its_interval_counts():
    matching = match_units(people("a", 6, 2), people("c", 40, 2), seed=0)
    placebo = run_placebo(matching, lambda run: False, seed=0, alpha=ALPHA)
    assert (placebo.status, placebo.runs) == ("passed", 100)
    effective = int(re.search(r"as (\d+) independent", placebo.reason).group(1))
    assert placebo.interval[1] == pytest.approx(1 - 0.025 ** (1 / effective), abs=0.02)


@pytest.mark.parametrize(("k", "n"), [(1, 40), (3, 100), (20, 100)])
def test_a_right_test_fails_the_placebo_once_in_a_thousand_times(k, n):
    rng = np.random.default_rng(0)
    failures = 0
    for seed in range(8):
        played = np.zeros((60, n), dtype=bool)
        for row in played:
            row[rng.permutation(n)[:k]] = True
        scores = rng.standard_cauchy(n)
        decide = names_somebody if k == 1 else differs_as_group
        alarms = np.array([decide((scores[row], scores[~row])) for row in played])
        failures += judge_alarms(alarms, played, seed=seed, alpha=ALPHA).status == "failed"
    assert failures <= 1


def test_runs_that_name_somebody_are_counted_as_by_sorting_every_draw():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((50, 30), dtype=np.float32)
    played, places = rng.random((20, 30)) < 0.2, rng.integers(0, 4, 20)
    runs = list(zip(played, places, strict=True))
    slowly = [
        sum(bool(set(np.argsort(-row)[:place]) & set(np.flatnonzero(playing))) for playing, place in runs)
        for row in scores
    ]
    assert _count_naming_runs(scores, played, places).tolist() == slowly
    assert max(slowly) > 0
