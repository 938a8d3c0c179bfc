"""Audited users against the null distribution: matched by amount and period, scored, p-values, and the excess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from recollect import labels
from recollect.audits.common.duplicates import Duplicates, find_duplicates
from recollect.audits.common.guard import Comparability
from recollect.audits.common.matching import Matching, Stratum, combine_draws, match_units
from recollect.audits.leakage.leakage_epsilon import Leak
from recollect.audits.leakage.predicted_runs import Flags, PredictedRuns
from recollect.audits.leakage.reference_models import ReferencePlan
from recollect.audits.leakage.user_runs import NOBODY, RunRule, UserRuns, collect_user_runs
from recollect.signals.evidence import AUDITED, CONTROLS, Evidence
from recollect.stats.intervals import Estimate, Interval, mean, weighted_sum
from recollect.stats.significance import benjamini_hochberg, conformal_p
from recollect.stats.strata import compute_normal_p, rank_stratum
from recollect.stats.two_sample_tests import mann_whitney
from recollect.streams import stream

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
TINY = 1e-12
MAX_TIES = 0.1
"""Up to this share of users with the same score, a rank test has a normal approximation."""
PERMUTATIONS = 1999
MAX_CELLS = 2_000_000
"""How many places are drawn at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StratumScores:
    """Users of one amount and those they are compared with, scored from as much text as all of them have."""

    users: Integers
    """Indices of audited users."""
    own: NDArray[np.bool_]
    """Which null users belong to no other stratum [null users]."""
    scores: Floats
    """[cuts, users]"""
    null_scores: Floats
    """NaN for those who do not have as much [cuts, null users]."""

    @property
    def controls(self) -> int:
        """How many null users have as much, in any cut."""
        return int((~np.isnan(self.null_scores)).any(axis=0).sum())

    def select_own(self, draw: int) -> tuple[Floats, Floats]:
        """The scores in one cut, of users and of the null users who belong to no other stratum."""
        null = self.null_scores[draw % len(self.scores)][self.own]
        return self.scores[draw % len(self.scores)], null[~np.isnan(null)]

    def compute_p_values(self) -> Floats:
        """Each user's conformal p-value, of several cuts twice the median [users]."""
        cuts = zip(self.scores, self.null_scores, strict=True)
        return combine_draws(np.stack([conformal_p(ours, theirs[~np.isnan(theirs)]) for ours, theirs in cuts]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """The audited users, and the null distribution: held-out users, or the same users under models not trained on them.

    The score of a user is the largest leak in one sequence that no other user wrote; 0 if there is none.
    """

    leaks: Mapping[int, Leak] = field(default_factory=dict)
    null_leaks: Mapping[int, Leak] = field(default_factory=dict)
    audited: UserRuns
    null: UserRuns
    """Of the null distribution; empty where there is none."""
    fold_of: Mapping[str, int] | None = None
    """By user, which of several models not trained on them replaces the target; None where one model does."""
    in_nats: bool
    """Whether sequences are compared by nats; else by words."""
    matching: Matching | None = None
    """Who is compared with which controls, cut to which amounts; None where the same people, or people drawn at random
    from them, are scored by other models."""

    @property
    def users(self) -> tuple[str, ...]:
        """The audited users, in ascending order."""
        return self.audited.users

    @property
    def null_users(self) -> tuple[str, ...]:
        """Those of the null distribution, in ascending order."""
        return self.null.users

    @property
    def same_users(self) -> bool:
        """Whether both are the same people, scored by different models."""
        return self.users == self.null_users

    @property
    def compared(self) -> NDArray[np.bool_]:
        """Which users have somebody to be compared with [users]."""
        found = np.zeros(len(self.users), dtype=np.bool_)
        for stratum in self.strata:
            found[stratum.users] = True
        return found

    @cached_property
    def strata(self) -> tuple[StratumScores, ...]:
        """Users by amount, with their scores; one stratum where nobody is cut."""
        if self.matching is None:
            whole = StratumScores(
                users=np.arange(len(self.users)),
                own=np.ones(len(self.null_users), dtype=np.bool_),
                scores=self.audited.score()[None],
                null_scores=self.null.score()[None],
            )
            return (whole,) if len(self.null_users) else ()
        return tuple(self._score_stratum(self.matching, stratum) for stratum in self.matching.strata)

    def _score_stratum(self, matching: Matching, stratum: Stratum) -> StratumScores:
        """The scores of users of one amount, and of the null users cut to it."""
        users, theirs = self.audited.with_records[stratum.members], self.null.with_records
        own = np.zeros(len(self.null_users), dtype=np.bool_)
        own[theirs[stratum.own_controls]] = True
        scores, null = np.empty((stratum.draws, len(users))), np.full((stratum.draws, len(own)), np.nan)
        kept = np.zeros(len(self.audited.records), np.int64), np.zeros(len(self.null.records), np.int64)
        for draw in range(stratum.draws):
            cut = matching.cut(stratum, draw)
            kept[0][self._places[0]], kept[1][self._places[1]] = cut.audited, cut.controls
            scores[draw] = self.audited.score(kept[0])[users]
            usable = theirs[cut.usable]
            null[draw, usable] = self.null.score(kept[1], clipped=True)[usable]
        return StratumScores(users=users, own=own, scores=scores, null_scores=null)

    @cached_property
    def _places(self) -> tuple[Integers, Integers]:
        """Where the pieces of the matching stand among the records of both sides."""
        assert self.matching is not None  # noqa: S101 - only asked for where users are matched
        sides = (self.audited, self.matching.audited), (self.null, self.matching.controls)
        ours, theirs = (runs.find_records(amounts.pieces) for runs, amounts in sides)
        return ours, theirs

    @property
    def uncut(self) -> bool:
        """Whether all users together are compared from all of their texts."""
        return self.matching is None or self.matching.equal

    @property
    def has_folds(self) -> bool:
        """Whether all users together are tested over the models of several folds."""
        return self._fold_means is not None

    @cached_property
    def permuted(self) -> bool:
        """Whether all users together are tested by permutation, because many scores are tied."""
        sides = (
            [(self.audited.score(), self.null.score())] if self.uncut else [each.select_own(0) for each in self.strata]
        )
        return not self.has_folds and any(_compute_tied_share(*both) > MAX_TIES for both in sides)

    @property
    def joint_method(self) -> str:
        """How all users together are tested."""
        if self.has_folds:
            return "Student's t over the models of the folds"
        if self.uncut:
            return "Mann–Whitney over users" + ", by permutation" * self.permuted
        draws = max((len(stratum.scores) for stratum in self.strata), default=1)
        test = "van Elteren over users of equal amounts" if len(self.strata) > 1 else "Mann–Whitney over users, cut"
        test += ", by permutation" * self.permuted
        return f"{test}, twice the median of {draws} cuts" if draws > 1 else test

    def compute_joint_p(self) -> float:
        """The p-value of "no more leaks from the audited users than under the null hypothesis"."""
        if (folds := self._fold_means) is not None:
            if np.ptp(np.concatenate([self.audited.score(), self.null.score()])) == 0:
                return 1.0
            return float(
                scipy.special.stdtr(len(folds) - 1, -folds.mean() / max(_compute_prediction_error(folds), TINY))
            )
        if self.uncut:
            return compute_van_elteren_p([(self.audited.score(), self.null.score())])
        draws = max((len(stratum.scores) for stratum in self.strata), default=0)
        p = [[compute_van_elteren_p([each.select_own(draw) for each in self.strata])] for draw in range(draws)]
        return float(combine_draws(np.array(p))[0]) if draws else 1.0

    def compute_p_values(self) -> Floats:
        """Each user's p-value against the null distribution; 1 where there is nobody to compare with."""
        p = np.ones(len(self.users))
        for stratum in self.strata:
            p[stratum.users] = stratum.compute_p_values()
        return p

    def correct(self, p: Floats) -> Floats:
        """P-values corrected over all users who could be compared."""
        corrected, compared = np.ones(len(p)), self.compared
        corrected[compared] = benjamini_hochberg(p[compared])
        return corrected

    def estimate_excess(self) -> Estimate:
        """How much more leaks from an audited user than from a null user, from as much text, on average."""
        if (folds := self._fold_means) is not None:
            return _predict_one_more_fold(folds, users=len(self.users))
        if self.same_users:
            return mean(self.audited.score() - self.null.score(), of="differences")
        if self.uncut:
            ours, theirs = self.audited.score(), self.null.score()
            n = {"users": len(ours), "controls": len(theirs)}
            return weighted_sum([(1, mean(ours)), (-1, mean(theirs))], n=n)
        ours = np.concatenate([stratum.scores.mean(axis=0) for stratum in self.strata])
        # what each control adds to the mean, over all users, of the mean of those a user is compared with
        share, used = np.zeros(len(self.null_users)), np.zeros(len(self.null_users), dtype=np.bool_)
        for stratum in self.strata:
            known = ~np.isnan(stratum.null_scores)
            weight = len(stratum.users) / (len(ours) * np.maximum(1, known.sum(axis=1, keepdims=True)))
            share += (np.where(known, stratum.null_scores, 0.0) * weight).mean(axis=0)
            used |= known.any(axis=0)
        n = {"users": len(ours), "controls": int(used.sum())}
        return weighted_sum([(1, mean(ours)), (-int(used.sum()), mean(share[used]))], n=n)

    @cached_property
    def _fold_means(self) -> Floats | None:
        """By how much the target exceeds each of several models not trained on a fold; None if there is one."""
        if self.fold_of is None or not self.same_users:
            return None
        fold = np.array([self.fold_of[user] for user in self.users])
        used = np.bincount(fold)
        means = np.bincount(fold, weights=self.audited.score() - self.null.score())[used > 0] / used[used > 0]
        return means if len(means) > 1 else None


def compute_van_elteren_p(strata: list[tuple[Floats, Floats]]) -> float:
    """The comparison of users with the controls of their own stratum: the p-value of van Elteren 1960.

    See `stats.strata`; a single stratum is the Mann–Whitney test. Normal approximation; by permutation within strata
    where many scores are tied, as where little leaks and most scores are 0: with one leak among 160 users, the
    approximation takes one of 40 for significant.

    Args:
        strata: The scores of users and of controls in each stratum; those that lack either are passed over.
    """
    usable = [(ours, theirs) for ours, theirs in strata if len(ours) and len(theirs)]
    if not usable or all(np.ptp(np.concatenate(both)) == 0 for both in usable):
        return 1.0
    if any(_compute_tied_share(*both) > MAX_TIES for both in usable):
        return _permute_within_strata(usable)
    if len(usable) == 1:
        return mann_whitney(*usable[0]).p
    return compute_normal_p(usable)


def _compute_tied_share(ours: Floats, theirs: Floats) -> float:
    """The share of users who have the commonest score: with many ties the comparison permutes."""
    counts = np.unique(np.concatenate([ours, theirs]), return_counts=True)[1]
    return float(counts.max(initial=0) / max(1, counts.sum()))


def _permute_within_strata(strata: list[tuple[Floats, Floats]]) -> float:
    """The p-value of comparing users with controls of their own stratum, by permuting both within their strata."""
    observed, sums = 0.0, np.zeros(PERMUTATIONS)
    for number, (ours, theirs) in enumerate(strata):
        ranks = rank_stratum(ours, theirs)
        observed += float(ranks[: len(ours)].sum())
        sums += ranks[_draw_permutations(number, len(ours), len(theirs))].sum(axis=0)
    return float((1 + np.count_nonzero(sums >= observed - TINY * len(sums))) / (1 + PERMUTATIONS))


@lru_cache(maxsize=256)
def _draw_permutations(stratum: int, users: int, controls: int) -> NDArray[np.int32]:
    """For the comparison by permutation: who takes the users' places in each [users, permutations].

    Kept, because a placebo asks for the same numbers of users and controls again and again.

    Args:
        stratum: The number of the stratum: each has draws of its own.
        users: How many users it has.
        controls: How many controls.
    """
    rng, total = stream(0, *labels.STREAM_LEAKAGE_PERMUTATION, stratum, users, controls), users + controls
    block, chosen = max(1, MAX_CELLS // total), np.empty((users, PERMUTATIONS), dtype=np.int32)
    for first in range(0, PERMUTATIONS, block):
        keys = rng.random((min(block, PERMUTATIONS - first), total), dtype=np.float32)
        chosen[:, first : first + block] = np.argpartition(keys, users - 1, axis=1)[:, :users].T
    return chosen


def _compute_prediction_error(folds: Floats) -> float:
    """For the comparison over folds: how far one more model may exceed their mean under the null hypothesis.

    The target is one training, and trainings differ: what one of them leaks of all users together varies as the models
    of the folds do. Users of a fold vary too, so this is rather too large than too small.
    """
    return float(folds.std(ddof=1) * np.sqrt(1 + 1 / len(folds)))


def _predict_one_more_fold(folds: Floats, *, users: int, confidence: float = 0.95) -> Estimate:
    """The mean of the folds that users are compared with, with an interval for one more model beside so many."""
    half = float(scipy.special.stdtrit(len(folds) - 1, (1 + confidence) / 2)) * _compute_prediction_error(folds)
    middle = float(folds.mean())
    return Estimate(
        value=middle,
        interval=Interval(middle - half, middle + half, confidence),
        n={"users": users, "models": len(folds)},
        method="Student's t: one more model beside those of the folds",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchedUsers:
    """The audited users and those they are compared with, and whether the two are comparable."""

    comparison: Comparison
    duplicates: Duplicates
    """Records that are left out of the comparison: somebody else wrote nearly the same, or the user did before."""
    comparability: Comparability | None = None
    """Without the model; None where the same people are scored by other models, or there is nobody to compare with."""


def match_users(
    evidence: Evidence,
    plan: ReferencePlan,
    unique: Flags,
    read: tuple[PredictedRuns, PredictedRuns | None],
    rule: RunRule,
) -> MatchedUsers:
    """Compare users with the null distribution: with the runs that one user alone wrote, from equal amounts of text.

    Copies of a user's own record count once: ten of them leak no more than one, and must not stand for ten records.
    Only controls are matched. The same people, or people drawn at random from them, scored by other models are equal by
    design: nobody is cut.

    Args:
        evidence: Contains the records.
        plan: Which models are compared for whom.
        unique: Which runs are one user's alone.
        read: The runs of the audited users, and of the null distribution.
        rule: Which runs count, and by what.
    """
    role = "" if plan.null is None else plan.null.corpus
    duplicates = find_duplicates(evidence.corpora[AUDITED], evidence.corpora.get(CONTROLS, ()), own=True)
    mine = replace(rule, dropped=duplicates.audited)
    users = tuple(sorted({record.owner for record in evidence.corpora[AUDITED]} - plan.seen))
    audited, null = collect_user_runs(evidence.corpora[AUDITED], users, read[0], unique, mine), NOBODY
    if plan.null is not None and read[1] is not None:
        theirs = replace(rule, dropped=duplicates.controls) if role == CONTROLS else mine
        null = collect_user_runs(evidence.corpora[role], plan.null.list_users(evidence), read[1], unique, theirs)
    comparison = Comparison(
        audited=audited,
        null=null,
        fold_of=plan.null.assigned if plan.null is not None and role == AUDITED else None,
        in_nats=rule.in_nats,
    )
    if role == CONTROLS:
        matching = match_units(audited.build_units(), null.build_units(), seed=evidence.seed)
        comparison = replace(comparison, matching=matching)
    return MatchedUsers(comparison=comparison, duplicates=duplicates)
