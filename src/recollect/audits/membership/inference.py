"""From scores to tests: each candidate against the controls, all as a group, members against non-members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from recollect import labels
from recollect.audits.common.duplicates import Duplicates
from recollect.audits.common.ground_truth import find_members
from recollect.audits.membership.candidate_scores import UnitScores, find_unscored_duplicates, score_candidates
from recollect.audits.membership.comparison import Comparer, GroupTest, Side, UnitTests, try_group_test
from recollect.audits.membership.decisions import (
    COARSE,
    Decisions,
    combine_with_group,
    decide,
    decide_outcome,
    is_coarse,
)
from recollect.audits.membership.shadow_models import POPULATION
from recollect.corpora.times import period_of
from recollect.errors import NotEnoughData
from recollect.results.result import Outcome
from recollect.signals.evidence import AUDITED, CONTROLS, Evidence
from recollect.signals.scores import Scores
from recollect.signals.shadow_scores import are_shadows_uneven
from recollect.signals.signal import Signal
from recollect.streams import stream

if TYPE_CHECKING:
    from recollect.audits.membership.audit import MembershipAudit


def even_out_shadows(signal: Signal, evidence: Evidence) -> Signal:
    """The signal for inference; where shadows were not trained alike on both sides, with as many for every record.

    Not where it is known of every candidate whether it is a member: members are then compared with non-members.
    """
    if not hasattr(signal, "even") or not are_shadows_uneven(evidence):
        return signal
    known = find_members(evidence)
    audited = evidence.corpora[AUDITED]
    truth = {} if known is None else known.truth_by_record(audited)
    complete = len(truth) == len(audited) and len(set(truth.values())) > 1
    return signal if complete else replace(cast("Any", signal), even=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Inference:
    """What was scored and tested, and from what; everything is computed when it is first asked for."""

    audit: MembershipAudit
    signal: Signal
    evidence: Evidence
    records: UnitScores
    """The scores by record."""
    scores: UnitScores
    """The scores of the units that are audited: records or users."""
    controls: str | None
    """The role of the corpus that sets the thresholds; None where no controls are given."""
    duplicates: Duplicates
    """Texts that nobody owns alone, which are left out."""

    @classmethod
    def of(cls, audit: MembershipAudit, signal: Signal, evidence: Evidence) -> Inference:
        """The scores of all units."""
        signal = even_out_shadows(signal, evidence)
        controls = next((role for role in (POPULATION, CONTROLS) if role in evidence.corpora), None)
        duplicates = find_unscored_duplicates(evidence, controls, by=audit.by)
        records = score_candidates(signal, evidence, controls, by="record", duplicates=duplicates)
        return cls(
            audit=audit,
            signal=signal,
            evidence=evidence,
            records=records,
            scores=records if audit.by == "record" else records.average_by_user(),
            controls=controls,
            duplicates=duplicates,
        )

    @property
    def rates(self) -> list[float]:
        """The false positive rates, the lowest first."""
        return sorted(set(self.audit.fpr))

    @cached_property
    def comparer(self) -> Comparer:
        """Compares sides at the same amounts."""
        periods = dict[str, Mapping[str, str | None]]()

        def find_period(role: str, record: str) -> str | None:
            if role not in periods:
                periods[role] = {each.id: period_of(each, self.audit.period) for each in self.evidence.corpora[role]}
            return periods[role].get(record)

        return Comparer(signal=self.signal, evidence=self.evidence, find_period=find_period)

    @cached_property
    def candidate_side(self) -> Side:
        """The records of all candidates that are audited."""
        units = set(self.scores.candidates.records)
        records = self.records.candidates
        if self.audit.by == "user":
            records = records.select_users(units)
        return Side(role=AUDITED, scores=records)

    @cached_property
    def control_side(self) -> Side | None:
        """The records of the controls; None where there are none."""
        if self.controls is None or self.records.controls is None or not len(self.records.controls):
            return None
        return Side(role=self.controls, scores=self.records.controls)

    @cached_property
    def units(self) -> UnitTests | None:
        """Each candidate against the controls; None without controls."""
        if self.control_side is None or not len(self.candidate_side.scores):
            return None
        return self.comparer.test_units(self.candidate_side, self.control_side, by=self.audit.by)

    @cached_property
    def decisions(self) -> Decisions | None:
        """What the controls say about each candidate; None without controls."""
        if self.units is None or self.scores.controls is None:
            return None
        return decide(
            self.units.p,
            self.scores.candidates.users,
            controls=len(set(self.scores.controls.users)),
            rates=self.rates,
            correction=self.audit.correction,
        )

    @cached_property
    def training(self) -> GroupTest | NotEnoughData | None:
        """Candidates against controls, as groups; why not, if they are too few; None without controls."""
        if self.control_side is None:
            return None
        return try_group_test(self.comparer, self.candidate_side, self.control_side)

    @cached_property
    def membership(self) -> GroupTest | NotEnoughData | None:
        """Known members against known non-members; why not, if they are too few; None where nobody is known.

        A user with records on both sides is compared within: labels of their records are dealt out anew.
        """
        if self.records.truth is None:
            return None
        truth = self.records.truth
        known = dict[str, set[bool | None]]()
        for record, user in zip(self.records.candidates.records, self.records.candidates.users, strict=True):
            known.setdefault(user, set()).add(truth.get(record))
        sides = [
            Side(
                role=AUDITED,
                scores=self.records.candidates.select_users([u for u, v in known.items() if v == {member}]),
            )
            for member in (True, False)
        ]
        mixed = [user for user, values in known.items() if {True, False} <= values]
        within = [self._split(self.records.candidates.select_users([user]), truth) for user in mixed]
        return try_group_test(
            self.comparer, sides[0], sides[1], within=[(above.values, below.values) for above, below in within]
        )

    @staticmethod
    def _split(scores: Scores, truth: Mapping[str, bool]) -> tuple[Scores, Scores]:
        """The scores of one user's records that are known members, and of those that are known not to be."""
        above, below = (
            scores.select([record for record in scores.records if truth.get(record) is member])
            for member in (True, False)
        )
        return above, below

    @property
    def group_test(self) -> GroupTest | None:
        """Candidates against controls, as groups; None without such a test.

        Nor with a single candidate: the test of the group would be that of the candidate once more.
        """
        return self.training if isinstance(self.training, GroupTest) and len(self.scores.candidates) > 1 else None

    @cached_property
    def any_p(self) -> float | None:
        """The p-value of "no candidate is a member", from the controls; None where they cannot say."""
        if self.decisions is None or self.units is None or self.scores.controls is None:
            return None
        test = self.group_test
        if test is None or test.equal:
            # single candidates that are compared at another amount have p-values of the same null distribution
            rng = stream(self.evidence.seed, *labels.STREAM_MEMBERSHIP_PERMUTATION)
            return combine_with_group(
                self.scores.candidates, self.scores.controls, self.decisions, None if test is None else test.p, rng=rng
            )
        return min(1.0, 2 * min(test.p, self.decisions.smallest))

    @property
    def permuted(self) -> bool:
        """Whether `any_p` is estimated by random permutations of candidates' and controls' users."""
        test = self.group_test
        if test is None or self.decisions is None:
            return False
        return test.equal and not is_coarse(self.decisions, test.p)

    @property
    def any_method(self) -> str:
        """How `any_p` combines the test of the best single candidate with that of the group."""
        if self.group_test is None or self.decisions is None:
            return "the smallest corrected p-value"
        if self.permuted:
            both = "the smaller of the smallest corrected p-value and training_p"
            return f"{both}, permutation of users (min-p), no less than {COARSE:g}"
        return "twice the smaller of the smallest corrected p-value and training_p"

    @property
    def membership_p(self) -> float | None:
        """The p-value of "members and non-members score alike"; None where they are unknown or too few."""
        return self.membership.p if isinstance(self.membership, GroupTest) else None

    def decide(self, membership_p: float | None) -> tuple[Outcome, float | None]:
        """What the tests decide, and the p-value that decides it.

        Args:
            membership_p: That of members against non-members; None where it does not count.
        """
        return decide_outcome(
            self.decisions,
            any_p=self.any_p,
            membership_p=membership_p,
            complete=self.scores.complete,
            alpha=self.audit.alpha,
        )

    @property
    def by_truth(self) -> bool:
        """Whether only members and non-members are compared to decide, and not candidates and controls."""
        if self.units is None:
            return self.control_side is None or self.records.truth is not None
        return self.scores.complete and self.membership_p is not None
