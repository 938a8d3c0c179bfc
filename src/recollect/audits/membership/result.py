"""The result of the membership audit: findings, tables and notes, from scores and decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.audits.common.builder import ResultBuilder
from recollect.audits.common.comparability import SHIFT_ALPHA, measure_separability, sample_records
from recollect.audits.common.roc import build_roc_table
from recollect.audits.membership.decisions import Decisions, decide, decide_outcome, find_threshold
from recollect.audits.membership.epsilon import CANARIES, CANARY_TEXTS, add_bounds, add_canary_bound
from recollect.audits.membership.evaluation import add_baseline, add_evaluation
from recollect.audits.membership.fleet import POOL, POPULATION
from recollect.audits.membership.scores import UnitScores, score_units
from recollect.audits.membership.susceptibility import Susceptibility, add_susceptibility
from recollect.audits.membership.verdict import Case, build_verdict
from recollect.corpora.canaries.manifest import Canaries
from recollect.errors import NotEnoughData
from recollect.results.result import Finding, Result
from recollect.signals.evidence import AUDITED, CONTROLS, SHADOW, Evidence
from recollect.signals.loss import Loss
from recollect.signals.scores import Floats, Scores
from recollect.signals.signal import Signal, compute_scores
from recollect.stats.auc import auc
from recollect.stats.comparisons import mann_whitney
from recollect.stats.groups import OwnedValues
from recollect.stats.intervals import proportion
from recollect.stats.requirements import required_controls

if TYPE_CHECKING:
    from recollect.audits.membership.audit import MembershipAudit

_TRAINING = (
    "The p-value of the null hypothesis that no candidate is a member: how often candidates would then, as a group, "
    "score so far above the controls."
)
_MEMBERSHIP = (
    "The p-value of the null hypothesis that the model was trained on none of them: how often members would then score "
    "so far above non-members."
)
_UNTESTED = (
    "P-values compare candidates with the controls: they are valid if candidates that are non-members are otherwise "
    "comparable with the controls.",
    "A candidate that is not flagged may still be a member.",
)
_UNTESTED_WITHOUT_CONTROLS = (
    "Members are compared with non-members: the AUC measures membership if the two are otherwise comparable.",
    "Which candidate is a member is not tested: identifying individual candidates requires controls.",
)
_NO_CONTROLS = (
    "This compares candidates with controls, and none are given. Give held-out controls (--controls, controls=)."
)
_NOBODY_IDENTIFIED = (
    "No controls are given: members are compared with non-members, and no candidate is identified individually. "
    "Thresholds and p-values of single candidates need held-out controls (--controls, controls=)."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class _ScoredUnits:
    """What was scored and decided, and from what."""

    audit: MembershipAudit
    signal: Signal
    evidence: Evidence
    controls: str | None
    """The role of the corpus that sets the thresholds."""
    scores: UnitScores
    decisions: Decisions | None
    """None where no controls are given."""

    @property
    def rates(self) -> list[float]:
        """The false positive rates, the lowest first."""
        return sorted(set(self.audit.fpr))


def build_result(audit: MembershipAudit, signal: Signal, evidence: Evidence) -> Result:
    """The result of an audit whose evidence is complete."""
    found = _score_and_decide(audit, signal, evidence)
    builder, scores, decisions = ResultBuilder(audit), found.scores, found.decisions
    training_p = _add_decisions(builder, found)
    membership_p = None if scores.truth is None else _add_truth(builder, found)
    susceptibility = add_susceptibility(builder, audit, evidence, scores, decisions)
    if CANARY_TEXTS in evidence.corpora:
        canaries = Canaries.load(evidence.files[CANARIES])
        add_canary_bound(
            builder, canaries, compute_scores(signal, evidence, CANARY_TEXTS), audit.claim, audit.confidence
        )
    _add_notes(builder, found)
    _add_separability(builder, found)
    builder.dropped |= scores.dropped
    builder.tables |= _build_tables(found, susceptibility)
    tests = {"training_p": training_p, "membership_p": membership_p}
    outcome = decide_outcome(decisions, **tests, complete=scores.complete, alpha=audit.alpha)
    by_controls = outcome == "found" and membership_p is not None and membership_p > audit.alpha
    case = Case(
        outcome=outcome,
        by=audit.by,
        signal=signal.name,
        candidates=len(scores.candidates),
        controls=None if scores.controls is None else len(scores.controls),
        identified=0 if decisions is None else int(np.count_nonzero(decisions.identified)),
        training_p=training_p,
        auc=next((each for each in builder.findings if each.name == "auc" and not by_controls), None),
    )
    return builder.build(
        verdict=build_verdict(case),
        outcome=outcome,
        code="too_few_records" if outcome == "inconclusive" else None,
        untested=_UNTESTED_WITHOUT_CONTROLS if decisions is None else _UNTESTED,
        settings={**audit.settings, "signal": signal.name},
    )


def _score_and_decide(audit: MembershipAudit, signal: Signal, evidence: Evidence) -> _ScoredUnits:
    """Every unit's score and, where there are controls, what is decided about every candidate."""
    controls = next((role for role in (POPULATION, CONTROLS) if role in evidence.corpora), None)
    scores, decisions = score_units(signal, evidence, controls, by=audit.by), None
    if scores.controls is not None:
        decisions = decide(
            scores.candidates,
            scores.controls,
            rates=sorted(set(audit.fpr)),
            correction=audit.correction,
            alpha=audit.alpha,
        )
    return _ScoredUnits(
        audit=audit, signal=signal, evidence=evidence, controls=controls, scores=scores, decisions=decisions
    )


def _add_decisions(builder: ResultBuilder, found: _ScoredUnits) -> float | None:
    """How many candidates are identified, individually and as a group. Returns the p-value of the latter."""
    audit, candidates, controls, decisions = (
        found.audit,
        found.scores.candidates,
        found.scores.controls,
        found.decisions,
    )
    if controls is None or decisions is None:
        for name in ("identified", "training_p", *(f"flagged_at_fpr_{rate:g}" for rate in found.rates)):
            builder.skip(name, code="missing_controls", reason=_NO_CONTROLS)
        return None
    for rate, refusal in decisions.refused.items():
        builder.refuse(f"flagged_at_fpr_{rate:g}", refusal)
    for rate, flags in decisions.flagged.items():
        builder.try_estimate(
            f"flagged_at_fpr_{rate:g}",
            lambda flags=flags: proportion(  # type: ignore[misc]
                OwnedValues(flags, candidates.users), of="candidates", confidence=audit.confidence
            ),
            unit="share",
            reading=f"Candidates that score above the threshold that {rate:.1%} of the controls exceed; if none of "
            f"them is a member, {rate:.1%} are expected.",
        )
    builder.findings.append(_count_identified(audit, decisions, len(controls)))
    builder.try_estimate(
        "auc_against_controls",
        lambda: auc(candidates, controls, confidence=audit.confidence),
        unit="probability",
        reading="The probability that a candidate scores above a control; 0.5 is expected if no candidate is a member.",
    )
    return _add_test(builder, "training_p", candidates.average_by_user(), controls.average_by_user(), _TRAINING)


def _count_identified(audit: MembershipAudit, decisions: Decisions, controls: int) -> Finding:
    """How many candidates are identified individually."""
    rate = "family-wise error rate" if decisions.correction == "holm" else "false discovery rate"
    return Finding(
        name="identified",
        value=int(np.count_nonzero(decisions.identified)),
        why_no_interval="It is a count of decisions, corrected for their number.",
        unit=f"{audit.by}s",
        n={"candidates": len(decisions.p), "controls": controls},
        method=f"conformal p-values against the controls, {decisions.correction}",
        reading=f"Candidates identified individually as members, after correction for their number: the {rate} is at "
        f"most {audit.alpha:g}.",
    )


def _add_truth(builder: ResultBuilder, found: _ScoredUnits) -> float | None:
    """How well members are distinguished from non-members. Returns the p-value of "they score alike"."""
    audit, scores = found.audit, found.scores
    users = scores if audit.by == "user" else scores.average_by_user()
    p = _add_test(builder, "membership_p", users.members, users.non_members, _MEMBERSHIP)
    flagged = {} if found.decisions is None else found.decisions.flagged
    add_evaluation(builder, scores, flagged, confidence=audit.confidence)
    alone = found.signal.name == "loss"
    loss = scores if alone else score_units(Loss(), found.evidence, found.controls, by=audit.by)
    add_baseline(builder, loss, rates=found.rates, confidence=audit.confidence, alone=alone)
    add_bounds(builder, scores, audit.claim, by=audit.by, confidence=audit.confidence)
    return p


def _add_test(builder: ResultBuilder, name: str, above: Scores, below: Scores, reading: str) -> float | None:
    """The p-value of "both sides score alike", by one score of each user."""
    try:
        p = mann_whitney(above, below).p
    except NotEnoughData as refusal:
        builder.refuse(name, refusal)
        return None
    n = {"users": len(above), "other_users": len(below)}
    builder.add_p_value(name, p, n=n, method="Mann–Whitney of users' mean scores", reading=reading)
    return p


def _add_notes(builder: ResultBuilder, found: _ScoredUnits) -> None:
    """Notes for the reader about the controls and the shadow models."""
    audit, candidates, controls, decisions = (
        found.audit,
        found.scores.candidates,
        found.scores.controls,
        found.decisions,
    )
    if controls is None or decisions is None:
        builder.note("nobody_identified", _NOBODY_IDENTIFIED)
    else:
        users, needed = len(set(controls.users)), required_controls(audit.alpha, tests=max(1, len(candidates)))
        if users < needed:
            which = (
                f"none of the {len(candidates):,} candidates can be identified"
                if decisions.correction == "holm"
                else f"no candidate can be identified alone, only several of the {len(candidates):,} together,"
            )
            builder.note(
                "too_few_controls_to_identify",
                f"With {users:,} control users, {which} at the significance level {audit.alpha:g} after correction; "
                f"{needed:,} control users would be enough.",
            )
    if SHADOW in found.signal.needs and POOL not in found.evidence.corpora:
        builder.note(
            "shadows_trained_on_candidates_only",
            "The given shadow models were trained on some of the candidates and on no control: p-values are valid only "
            "if records that shadows were trained on score like records that they were not. Train shadows with a "
            "recipe to treat both in the same way.",
        )


def _add_separability(builder: ResultBuilder, found: _ScoredUnits) -> None:
    """How well the two sides that are compared can be separated without the model; a warning if they can."""
    audited, audit = found.evidence.corpora[AUDITED], found.audit
    if found.scores.complete or found.controls is None:
        truth, by_user = found.scores.truth or {}, audit.by == "user"
        one, other = (
            sample_records(
                audited, frozenset(r.id for r in audited if truth.get(r.owner if by_user else r.id) is member)
            )
            for member in (True, False)
        )
        sides = "members and non-members"
    else:
        one, other = sample_records(audited), sample_records(found.evidence.corpora[found.controls])
        sides = "candidates and controls"
    try:
        compared = measure_separability(one, other, confidence=audit.confidence)
    except NotEnoughData as refusal:
        builder.refuse("blind_auc", refusal)
        return
    builder.try_estimate(
        "blind_auc",
        lambda: compared.effect,
        unit="probability",
        reading=f"How well a bag-of-words classifier, which has no access to the model, separates {sides}; 0.5 if they "
        "are comparable.",
    )
    if compared.p <= SHIFT_ALPHA:
        builder.note(
            "distinguishable_without_model",
            f"The {sides} can be distinguished without the model (AUC {compared.effect.value:.2f} by their words "
            "alone): what is found here may measure that difference, and not membership.",
        )


def _build_tables(found: _ScoredUnits, susceptibility: Susceptibility | None) -> dict[str, pa.Table]:
    """The longer tables: one row per candidate, and what figures are drawn from."""
    scores, decisions = found.scores, found.decisions
    candidates = scores.candidates.to_table(**({} if decisions is None else _build_columns(decisions)))
    if scores.truth is not None:
        truth = pa.array([scores.truth.get(name) for name in scores.candidates.records], pa.bool_())
        candidates = candidates.append_column("trained", truth)
    if susceptibility is not None:
        likely = pa.array([susceptibility.likely.get(name) for name in scores.candidates.records], pa.float64())
        candidates = candidates.append_column("likely_memorised", likely)
    tables = {"candidates": candidates}
    if susceptibility is not None:
        tables["susceptibility"] = susceptibility.table
    if scores.controls is not None and decisions is not None:
        rates = sorted(decisions.flagged)
        thresholds = [find_threshold(scores.controls, rate) for rate in rates]
        tables["controls"] = scores.controls.to_table()
        tables["thresholds"] = pa.table({"fpr": pa.array(rates, pa.float64()), "threshold": pa.array(thresholds)})
    if scores.has_both:
        tables["roc"] = build_roc_table(scores.members, scores.non_members)
    return tables


def _build_columns(decisions: Decisions) -> dict[str, Floats | NDArray[np.bool_]]:
    """The columns of a table of candidates that say what was decided."""
    return {
        "p_value": decisions.p,
        "p_corrected": decisions.corrected,
        "identified": decisions.identified,
        **{f"flagged_at_fpr_{rate:g}": flags for rate, flags in decisions.flagged.items()},
    }
