"""The placebo of the membership audit: controls in the place of the candidates, by the same cuts and the same tests."""

from __future__ import annotations

import numpy as np

from recollect import labels
from recollect.audits.common.matching import Matching
from recollect.audits.common.placebo import PlaceboRun, run_placebo
from recollect.audits.membership.comparison import Comparer, Side
from recollect.results.result import Placebo
from recollect.signals.scores import Floats
from recollect.stats.significance import benjamini_hochberg
from recollect.stats.strata import van_elteren
from recollect.streams import stream

DRAWS = 999
"""Permutations of a group test in one run."""


def play_controls(comparer: Comparer, above: Side, below: Side, *, single: bool, alpha: float) -> Placebo:
    """How often the audit accuses users of the second side who are cut to what those of the first have.

    Args:
        comparer: Scores and matches.
        above: Those who are audited.
        below: Those who play them.
        single: Whether users are tested one by one, too.
        alpha: The significance level of the audit.
    """
    if not len(above.scores) or not len(below.scores):
        return Placebo(status="not_run", reason="One side has no records.")
    matching = comparer.match_users(above, below)
    if set(above.scores.users) & set(below.scores.users):
        return Placebo(status="not_run", reason="Users have records on both sides, so that nobody can play another.")
    table = _Table(comparer, matching, above, below)
    seed = comparer.evidence.seed

    def decide(run: PlaceboRun) -> bool:
        return table.accuse(run, single=single, alpha=alpha)

    return run_placebo(matching, decide, seed=seed, alpha=alpha)


class _Table:
    """The score of every control at every amount at which somebody is compared: computed once, for all runs."""

    def __init__(self, comparer: Comparer, matching: Matching, above: Side, below: Side) -> None:
        self.matching = matching
        self.index = {name: i for i, name in enumerate(matching.controls.units)}
        self.rng = stream(comparer.evidence.seed, *labels.STREAM_MEMBERSHIP_PLACEBO)
        self.scores, self.stratum_of = list[Floats](), dict[tuple[str, tuple[tuple[str, int], ...]], int]()
        for number, stratum in enumerate(matching.strata):
            cut = matching.cut(stratum)
            found = np.full(len(matching.controls), np.nan)
            found[cut.usable] = comparer.score_cut(matching, cut, above, below)[1][cut.usable]
            self.scores.append(found)
            kept = np.flatnonzero(cut.controls)
            pieces = dict[int, list[tuple[str, int]]]()
            for i in kept.tolist():
                unit = int(matching.controls.unit_of[i])
                pieces.setdefault(unit, []).append((matching.controls.pieces[i], int(cut.controls[i])))
            for unit, own in pieces.items():
                self.stratum_of.setdefault((matching.controls.units[unit], tuple(own)), number)

    def accuse(self, run: PlaceboRun, *, single: bool, alpha: float) -> bool:
        """Whether the controls of one run would be found to be members."""
        places = {
            self.index[unit.name]: self.stratum_of[unit.name, tuple((p.record, p.tokens) for p in unit.pieces)]
            for unit in run.audited
        }
        free = np.ones(len(self.index), dtype=np.bool_)
        free[list(places)] = False
        strata, p = list[tuple[Floats, Floats]](), list[float]()
        owner = self._assign(places, free)
        for number, scores in enumerate(self.scores):
            mine = np.array([scores[i] for i, place in places.items() if place == number])
            others = scores[free & ~np.isnan(scores)]
            if not len(mine):
                continue
            strata.append((mine, scores[free & (owner == number) & ~np.isnan(scores)]))
            p += [(1 + int(np.count_nonzero(others >= value))) / (1 + len(others)) for value in mine]
        tests = [float(benjamini_hochberg(p).min())] if single and p else []
        if len(places) > 1 and any(len(one) and len(other) for one, other in strata):
            tests.append(van_elteren(strata, rng=self.rng, draws=DRAWS).p)
        return bool(tests) and len(tests) * min(tests) <= alpha

    def _assign(self, places: dict[int, int], free: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Floats:
        """The stratum whose group test each other control takes part in: its own, or at random one that is played."""
        played = np.array(sorted(set(places.values())), dtype=np.int64)
        owner = np.full(len(free), -1.0)
        for number in played:
            owner[self.matching.strata[number].own_controls] = number
        lost = np.flatnonzero(owner < 0)
        owner[lost] = self.rng.choice(played, len(lost))
        return owner
