"""The placebo of tests by ranks: all runs at once against one run at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from recollect.audits.common.score_table import ScoreTable, accuse
from recollect.stats.significance import benjamini_hochberg

CONTROLS, RUNS = 60, 300


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("strata", [1, 3])
@pytest.mark.parametrize("players", [1, 8])
def test_all_runs_at_once_decide_as_one_run_at_a_time(single, strata, players):
    rng = np.random.default_rng(strata + players)
    scores = rng.normal(size=(strata, CONTROLS))
    scores[1:, :15] = np.nan  # cannot be cut to these amounts
    table = ScoreTable(scores=scores, owner=rng.integers(0, strata, CONTROLS))
    table.owner[:15] = 0
    places = np.full((RUNS, CONTROLS), -1)
    for row in places:
        chosen = rng.permutation(np.arange(15, CONTROLS))[:players]
        row[chosen] = rng.integers(0, strata, players)
        row[chosen[:strata]] = np.arange(min(strata, players))  # every stratum is played, as far as players go
    if players < strata:
        places[places > 0] = 0
        table.owner[:] = 0
    found = accuse(table, places, single=single, alpha=0.2, rng=np.random.default_rng(0))
    expected = [accuse_one(table, row, single=single, alpha=0.2) for row in places]
    assert found.tolist() == expected
    assert 0 < sum(expected) < RUNS or (players == 1 and not single)


def accuse_one(table, row, *, single, alpha):
    """The slow way: stratum by stratum, control by control."""
    p, statistic, variance = [], 0.0, 0.0
    for number, scores in enumerate(table.scores):
        mine = [scores[i] for i in range(CONTROLS) if row[i] == number]
        free = [i for i in range(CONTROLS) if row[i] < 0 and not np.isnan(scores[i])]
        p += [(1 + sum(scores[i] >= value for i in free)) / (1 + len(free)) for value in mine]
        others = [scores[i] for i in free if table.owner[i] == number]
        n, m = len(mine), len(others)
        if n and m:
            ranks = stats.rankdata([*mine, *others]) / (n + m + 1)
            statistic += ranks[:n].sum() - n / 2
            variance += n * m * ranks.var(ddof=1) / (n + m)
    tests = [benjamini_hochberg(p).min()] if single else []
    if len(p) > 1 and variance > 0:
        tests.append(stats.norm.sf(statistic / np.sqrt(variance)))
    return bool(tests) and bool(len(tests) * min(tests) <= alpha)
