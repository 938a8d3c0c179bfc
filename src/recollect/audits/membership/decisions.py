"""From p-values to decisions: flags at each rate, corrected p-values, one test of whether any candidate is a member.

`found` and `identified` agree: a candidate is identified only if the test of all candidates together finds something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from recollect.errors import NotEnoughData
from recollect.results.result import Outcome
from recollect.signals.scores import Floats, Scores
from recollect.stats.bootstrap import MAX_CELLS
from recollect.stats.midranks import midranks
from recollect.stats.requirements import require_count, required_controls
from recollect.stats.significance import benjamini_hochberg, conformal_p, holm

Correction = Literal["auto", "benjamini-hochberg", "holm"]
ChosenCorrection = Literal["benjamini-hochberg", "holm"]

DRAWS, FEW_DRAWS = 1999, 299
"""Permutations that give the null distribution of the smaller of two p-values; few where it is near no level."""
CLEAR = 0.3
"""From twice the smaller p-value on, it is not near any level."""
COARSE = 0.005
"""Below this the permutations are too few to say more, and twice the smaller p-value is told."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """What is decided about every candidate, whether or not the truth is known."""

    p: Floats
    """The share of controls that score as high, in the order of the candidates."""
    corrected: Floats
    """The same after correction for the number of candidates, before the test of all of them together."""
    correction: ChosenCorrection
    flagged: Mapping[float, NDArray[np.bool_]]
    """At each false positive rate that the controls support, who is flagged."""
    refused: Mapping[float, NotEnoughData]
    """The rates that they do not support."""

    @property
    def smallest(self) -> float:
        """The smallest corrected p-value of a candidate for membership."""
        return float(self.corrected.min(initial=1.0))


def decide(
    p: Floats, users: Sequence[str], *, controls: int, rates: Sequence[float], correction: Correction
) -> Decisions:
    """The decisions about all candidates of a membership audit.

    Args:
        p: The p-value of each candidate against controls of the same amount.
        users: Whose each candidate is.
        controls: How many control users there are.
        rates: The false positive rates at which candidates are flagged.
        correction: How p-values are corrected; see `choose_correction`.
    """
    chosen = choose_correction(users, correction)
    flagged, refused = dict[float, NDArray[np.bool_]](), dict[float, NotEnoughData]()
    for rate in rates:
        try:
            require_count(
                controls,
                required_controls(rate),
                of="users among the controls",
                purpose=f"A p-value of {rate:g}",
                code="too_few_controls",
            )
            flagged[rate] = np.asarray(p <= rate)
        except NotEnoughData as refusal:
            refused[rate] = refusal
    corrected = holm(p) if chosen == "holm" else benjamini_hochberg(p)
    return Decisions(p=p, corrected=corrected, correction=chosen, flagged=flagged, refused=refused)


def choose_correction(users: Sequence[str], correction: Correction) -> ChosenCorrection:
    """The correction of decisions: Holm's where a user has several candidates, and Benjamini–Hochberg's otherwise.

    P-values of one user's candidates depend on each other in ways that Benjamini–Hochberg does not allow for.
    """
    if correction != "auto":
        return correction
    return "holm" if len(set(users)) < len(users) else "benjamini-hochberg"


def combine_with_group(
    candidates: Scores, controls: Scores, decisions: Decisions, group_p: float | None, *, rng: np.random.Generator
) -> float:
    """The p-value that decides "no candidate is a member", from the best single candidate and from all as a group.

    The smaller of the two p-values is compared with its null distribution: candidates' and controls' users dealt out
    anew (Westfall & Young 1993, min-p). So their dependence is paid for, and no more: taking twice the smaller would
    waste nearly half of the level.

    Args:
        candidates: Their scores, compared as they are.
        controls: Those of the controls.
        decisions: About the candidates.
        group_p: The p-value of the Mann–Whitney test of users' means; None where there is none.
        rng: For the permutations.
    """
    if group_p is None:
        return decisions.smallest
    twice = min(1.0, 2 * min(decisions.smallest, group_p))
    if is_coarse(decisions, group_p):
        return twice
    drawn = _Permutations(candidates, controls, decisions.correction)
    draws = DRAWS if twice < CLEAR else FEW_DRAWS
    return max(COARSE, drawn.compute_p(min(decisions.smallest, group_p), rng, draws))


def is_coarse(decisions: Decisions, group_p: float) -> bool:
    """Whether the p-value that decides is so small that twice the smaller of two is told, and nothing is permuted."""
    return 2 * min(decisions.smallest, group_p) <= COARSE


def decide_outcome(
    decisions: Decisions | None, *, any_p: float | None, membership_p: float | None, complete: bool, alpha: float
) -> tuple[Outcome, float | None]:
    """Whether the model reveals who is a member, and the p-value that decides it.

    Args:
        decisions: About every candidate; None without controls.
        any_p: The p-value of "no candidate is a member", from the controls; None if they are too few.
        membership_p: The p-value of "members and non-members score alike"; None if they are too few.
        complete: Whether it is known of every candidate if it is a member. Controls then have nothing to add.
        alpha: The significance level.
    """
    tests = [] if membership_p is None else [membership_p]
    if not (complete and tests) and decisions is not None and any_p is not None:
        tests.append(any_p)
    if not tests:
        return "inconclusive", None
    p = min(1.0, len(tests) * min(tests))
    return ("found" if p <= alpha else "not_found"), p


def identify_candidates(
    decisions: Decisions, outcome_p: float | None, *, alpha: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """The corrected p-values as they are told, and who is identified.

    Where the test of all candidates together does not find anything, no single one is identified: with no member among
    them somebody is identified in at most a share α of runs, and among several members at most a share α of those that
    are identified is expected to be wrong.

    Args:
        decisions: About every candidate.
        outcome_p: The p-value that decides the outcome; None if nothing can be decided.
        alpha: The significance level.
    """
    gate = 1.0 if outcome_p is None else outcome_p
    corrected = decisions.corrected if gate <= alpha else np.maximum(decisions.corrected, gate)
    return corrected, np.asarray(corrected <= alpha)


def flag_at_rate(candidates: Scores, controls: Scores, rate: float) -> NDArray[np.bool_]:
    """Which candidates score higher than all but a share `rate` of the controls, compared as they are.

    Raises:
        NotEnoughData: There are too few controls for such a rate.
    """
    return np.asarray(conformal_p(candidates.values, controls, alpha=rate) <= rate)


def find_threshold(controls: Scores, rate: float) -> float:
    """For the decision on a candidate: the score of a control to exceed to be flagged at a rate.

    >>> find_threshold(Scores(("a", "b", "c"), ("a", "b", "c"), np.array([1.0, 2.0, 3.0])), 0.5)
    2.0
    """
    levels = np.unique(controls.values)
    low_enough = conformal_p(np.nextafter(levels, np.inf), controls) <= rate
    return float(levels[low_enough][0]) if low_enough.any() else float("inf")


class _Permutations:
    """Users of both sides, dealt out anew: the smaller of the two p-values under the null hypothesis."""

    def __init__(self, candidates: Scores, controls: Scores, correction: ChosenCorrection) -> None:
        ours, theirs = ([(side, user) for user in scores.users] for side, scores in enumerate((candidates, controls)))
        codes = {user: i for i, user in enumerate(dict.fromkeys([*ours, *theirs]))}
        user = np.array([codes[each] for each in (*ours, *theirs)], dtype=np.int64)
        values = np.concatenate([candidates.values, controls.values])
        self.correction = correction
        self.audited, self.users = len(set(ours)), len(codes)
        self.sizes = np.bincount(user, minlength=self.users)
        order = np.argsort(-values, kind="stable")
        self.user, descending = user[order], values[order]
        ends = np.append(np.flatnonzero(descending[1:] != descending[:-1]), len(values) - 1)
        self.last_tie = ends[np.searchsorted(ends, np.arange(len(values)))]
        """Of each value, from the highest on, the last one that equals it."""
        with np.errstate(invalid="ignore"):
            means = np.bincount(user, weights=values, minlength=self.users) / self.sizes
        self.ranks = midranks(np.nan_to_num(means, nan=-np.inf, neginf=-np.inf))

    def compute_p(self, observed: float, rng: np.random.Generator, draws: int) -> float:
        """How often dealt labels give a smaller p-value at least as small, the observed ones counted."""
        block = max(1, MAX_CELLS // max(1, len(self.user)))
        extreme, total = 1, 1
        for first in range(0, draws, block):
            labels = np.tile(np.arange(self.users) < self.audited, (min(block, draws - first), 1))
            labels = rng.permuted(labels, axis=1)
            found = np.minimum(self._find_smallest(labels), self._test_groups(labels))
            extreme += int(np.count_nonzero(found <= observed * (1 + 1e-9)))
            total += len(labels)
        return extreme / total

    def _find_smallest(self, labels: NDArray[np.bool_]) -> Floats:
        """The smallest corrected p-value of single candidates, for each row of labels."""
        candidate = labels[:, self.user]
        above = np.cumsum(~candidate / self.sizes[self.user], axis=1)[:, self.last_tie]
        p = (1 + np.round(above, 9)) / (self.users - self.audited + 1)
        count = candidate.sum(axis=1, keepdims=True)
        if self.correction == "holm":
            return np.asarray(np.minimum(1, (count * np.where(candidate, p, 1)).min(axis=1)))
        place = np.cumsum(candidate, axis=1)[:, self.last_tie]
        return np.asarray(np.minimum(1, np.where(candidate, p * count / np.maximum(place, 1), 1).min(axis=1)))

    def _test_groups(self, labels: NDArray[np.bool_]) -> Floats:
        """For the decision by group: the Mann–Whitney p-value of users' means, for each row of labels."""
        n, m = self.audited, self.users - self.audited
        statistic = labels @ self.ranks - n * (n + 1) / 2
        _, ties = np.unique(self.ranks, return_counts=True)
        variance = n * m / 12 * (n + m + 1 - float((ties**3 - ties).sum()) / ((n + m) * (n + m - 1)))
        if variance <= 0:
            return np.ones(len(labels))
        return np.asarray(scipy.special.ndtr(-(statistic - n * m / 2 - 0.5) / variance**0.5))
