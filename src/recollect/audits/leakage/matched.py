"""Leakage compared fairly: near-duplicates left out, users matched by amount and period, and both sides checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from recollect.audits.common.duplicates import Duplicates, find_duplicates
from recollect.audits.common.guard import Comparability, check_matched
from recollect.audits.common.matching import match_units
from recollect.audits.leakage.comparison import Comparison
from recollect.audits.leakage.epsilon import PredictedRuns
from recollect.audits.leakage.references import ReferencePlan
from recollect.audits.leakage.scores import NOBODY, RunRule, collect_user_runs
from recollect.audits.leakage.words import Flags
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData
from recollect.signals.evidence import AUDITED, CONTROLS, Evidence


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchedUsers:
    """The audited users and those they are compared with, and whether the two are comparable."""

    comparison: Comparison
    duplicates: Duplicates
    """Records that are left out of the comparison, because somebody else wrote nearly the same."""
    comparability: Comparability | None = None
    """Without the model; None where the same people are scored by other models, or there is nobody to compare with."""


def match_users(
    evidence: Evidence,
    plan: ReferencePlan,
    unique: Flags,
    read: tuple[PredictedRuns, PredictedRuns | None],
    rule: RunRule,
) -> MatchedUsers:
    """Users beside the null distribution, with the runs that one user alone wrote, from equal amounts of text.

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
    duplicates = find_duplicates(evidence.corpora[AUDITED], evidence.corpora.get(CONTROLS, ()))
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
    if role != CONTROLS:
        return MatchedUsers(comparison=comparison, duplicates=duplicates)
    matching = match_units(audited.build_units(), null.build_units(), seed=evidence.seed)
    comparison = replace(comparison, matching=matching)
    return MatchedUsers(
        comparison=comparison, duplicates=duplicates, comparability=_check(evidence, comparison, duplicates, rule)
    )


def _check(evidence: Evidence, comparison: Comparison, duplicates: Duplicates, rule: RunRule) -> Comparability | None:
    """Whether the users are like the controls, from what is left of their texts; None if there is too little."""
    if comparison.matching is None or not comparison.matching.strata:
        return None
    users = frozenset(comparison.users)
    audited = (record for record in evidence.corpora[AUDITED] if record.owner in users)
    try:
        return check_matched(
            comparison.matching,
            _leave_out(audited, duplicates.audited),
            _leave_out(evidence.corpora[CONTROLS], duplicates.controls),
            seed=evidence.seed,
            period=rule.period,
        )
    except NotEnoughData:
        return None  # `decide` refuses as well, and says why


def _leave_out(records: Iterable[Record], dropped: frozenset[str]) -> Iterable[Record]:
    """The records but for some."""
    return (record for record in records if record.id not in dropped)
