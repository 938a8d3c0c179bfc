"""The result of the membership audit: findings, tables and notes, from scores and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.audits.common.guard import Comparability
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.common.roc_table import build_roc_table
from recollect.audits.membership.accuracy import add_accuracy, add_loss_accuracy, count_candidates
from recollect.audits.membership.candidate_scores import score_candidates
from recollect.audits.membership.comparison import GroupTest, UnitTests
from recollect.audits.membership.decisions import DRAWS, Decisions, find_threshold, identify_candidates
from recollect.audits.membership.epsilon_bounds import (
    CANARY_TEXTS,
    add_canary_epsilon_bound,
    add_epsilon_bounds,
)
from recollect.audits.membership.inference import Inference
from recollect.audits.membership.safeguards import (
    Validity,
    add_safeguards,
    check_validity,
    count_controls_to_identify_one,
)
from recollect.audits.membership.shadow_models import POOL
from recollect.audits.membership.susceptibility import Susceptibility, add_susceptibility
from recollect.audits.membership.verdict import Case, build_verdict
from recollect.corpora.canaries.manifest import Canaries
from recollect.errors import NotEnoughData
from recollect.files.arrow_tables import build_array, build_table
from recollect.results.result import Finding, Result
from recollect.signals.evidence import SHADOW, Evidence
from recollect.signals.loss import Loss
from recollect.signals.roles import CANARIES
from recollect.signals.scores import Floats
from recollect.signals.shadow_scores import are_shadows_uneven
from recollect.signals.signal import Signal, compute_scores
from recollect.stats.auc import auc
from recollect.stats.groups import OwnedValues
from recollect.stats.intervals import proportion

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
_ANY = (
    "The p-value of the null hypothesis that no candidate is a member, from the candidate with the most evidence and "
    "from all of them as a group: it decides the outcome."
)
_UNEQUAL = (
    "Candidates and controls have different amounts of records or tokens, or other periods: their scores differ "
    "whether or not the candidates are members; p-values compare them at the same amounts."
)
_UNEQUAL_MEMBERS = (
    "Members and non-members have different amounts of records or tokens, or other periods: their scores differ "
    "whatever the model was trained on; membership_p compares them at the same amounts."
)
_SHADOWS = (
    "The given shadow models were not trained alike on candidates and controls: p-values of candidates are valid only "
    "if records that shadows were trained on score like records that they were not. Train shadows with a recipe to "
    "treat both in the same way."
)
_EVEN_SHADOWS = (
    "The given shadow models were not trained alike on candidates and controls. So that both are scored in the same "
    "way, every record is compared with as many shadows that were not trained on it, and what being trained on it "
    "would add is taken from the average of all: this finds less than shadows that a recipe trains on both."
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


def build_result(audit: MembershipAudit, signal: Signal, evidence: Evidence) -> Result:
    """The result of a membership audit whose evidence is complete: match, guard, score, decide, state power."""
    found = Inference.of(audit, signal, evidence)
    validity, builder = check_validity(found), ResultBuilder(audit)
    corrected, identified = _identify_if_found(found, validity)
    _add_decisions(builder, found, identified)
    measured = _add_ground_truth(builder, found) if found.scores.truth is not None else []
    susceptibility = add_susceptibility(builder, audit, evidence, found.scores, found.decisions)
    if CANARY_TEXTS in evidence.corpora:
        canaries = Canaries.load(evidence.files[CANARIES])
        add_canary_epsilon_bound(
            builder, canaries, compute_scores(signal, evidence, CANARY_TEXTS), audit.claim, audit.confidence
        )
    _add_membership_notes(builder, found)
    _note_seed(builder, found, validity.p)
    add_safeguards(builder, found, validity)
    _withhold_unequal(builder, found, measured)
    builder.dropped |= found.scores.dropped
    columns = _build_candidate_columns(found, corrected, identified) if validity.naming_is_valid else {}
    builder.tables |= _build_tables(found, susceptibility, columns)
    return builder.build(
        verdict=build_verdict(_build_verdict_case(builder, found, validity, identified)),
        outcome=validity.conclusion.outcome,
        code=validity.conclusion.code,
        untested=_UNTESTED_WITHOUT_CONTROLS if found.decisions is None else _UNTESTED,
        settings={**audit.settings, "signal": signal.name},
    )


def _identify_if_found(found: Inference, validity: Validity) -> tuple[Floats, NDArray[np.bool_]]:
    """Corrected p-values as a membership result reports them, and who is identified; nobody where nothing is found."""
    if found.decisions is None:
        return np.zeros(0), np.zeros(0, dtype=np.bool_)
    return identify_candidates(found.decisions, validity.p, alpha=found.audit.alpha)


def _build_verdict_case(
    builder: ResultBuilder, found: Inference, validity: Validity, identified: NDArray[np.bool_]
) -> Case:
    """All that the verdict depends on, collected from the findings of a membership result."""
    scores, outcome = found.scores, validity.conclusion.outcome
    membership_p, guard = validity.membership_p, validity.guard
    by_controls = membership_p != found.membership_p or (
        outcome == "found" and membership_p is not None and membership_p > found.audit.alpha
    )
    return Case(
        outcome=outcome,
        code=validity.conclusion.code,
        by=found.audit.by,
        candidates=len(scores.candidates),
        users=len(set(scores.candidates.users)),
        controls=None if scores.controls is None else len(scores.controls),
        identified=int(np.count_nonzero(identified)) if validity.naming_is_valid else None,
        training_p=found.training.p if isinstance(found.training, GroupTest) else None,
        any_p=found.any_p,
        membership_p=None if by_controls else membership_p,
        members=_count_known_users(found),
        auc=next((each for each in builder.findings if each.name == "auc" and not by_controls), None),
        reason=guard.reason if isinstance(guard, Comparability) and not guard.comparable else "",
        power=validity.power,
        alpha=found.audit.alpha,
        by_truth=found.by_truth,
        copied=(scores.dropped.get("audited.near_duplicate", 0), scores.dropped.get("controls.near_duplicate", 0)),
    )


def _count_known_users(found: Inference) -> tuple[int, int]:
    """How many users a membership result compares as members and as non-members."""
    if isinstance(found.membership, GroupTest):
        return found.membership.above, found.membership.below
    return len(set(found.scores.members.users)), len(set(found.scores.non_members.users))


def _add_decisions(builder: ResultBuilder, found: Inference, identified: NDArray[np.bool_]) -> None:
    """The findings of how many candidates are identified, individually and as a group."""
    audit, candidates, controls, decisions = (
        found.audit,
        found.scores.candidates,
        found.scores.controls,
        found.decisions,
    )
    if controls is None or decisions is None or found.units is None:
        for name in ("identified", "training_p", *(f"flagged_at_fpr_{rate:g}" for rate in found.rates)):
            builder.skip(name, code="missing_controls", reason=_NO_CONTROLS)
        return
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
    builder.findings.append(_build_identified_finding(audit, decisions, identified, len(controls)))
    if not isinstance(found.training, GroupTest) or found.training.equal:
        builder.try_estimate(
            "auc_against_controls",
            lambda: count_candidates(auc(candidates, controls, confidence=audit.confidence)),
            unit="probability",
            reading="The probability that a candidate scores above a control; 0.5 is expected if no candidate is a "
            "member.",
        )
    _add_group_test(builder, "training_p", found.training, _TRAINING)
    if found.any_p is not None and not found.scores.complete:
        builder.add_p_value(
            "any_member_p",
            found.any_p,
            n={"candidates": len(candidates), "controls": len(controls)},
            method=found.any_method,
            reading=_ANY,
        )


def _build_identified_finding(
    audit: MembershipAudit, decisions: Decisions, identified: NDArray[np.bool_], controls: int
) -> Finding:
    """The finding of how many candidates are identified individually."""
    rate = "family-wise error rate" if decisions.correction == "holm" else "false discovery rate"
    return Finding(
        name="identified",
        value=int(np.count_nonzero(identified)),
        why_no_interval="It is a count of decisions, corrected for their number.",
        unit=f"{audit.by}s",
        n={"candidates": len(decisions.p), "controls": controls},
        method=f"conformal p-values against the controls, {decisions.correction}",
        reading=f"Candidates identified individually as members, after correction for their number: the {rate} is at "
        f"most {audit.alpha:g}.",
    )


def _add_ground_truth(builder: ResultBuilder, found: Inference) -> list[str]:
    """The findings that need ground truth: membership_p, accuracy, baseline and bounds; names of all but the first."""
    audit, scores = found.audit, found.scores
    _add_group_test(builder, "membership_p", found.membership, _MEMBERSHIP)
    before = {finding.name for finding in builder.findings}
    add_accuracy(
        builder, scores, {} if found.decisions is None else found.decisions.flagged, confidence=audit.confidence
    )
    alone = found.signal.name == "loss"
    loss = (
        scores
        if alone
        else score_candidates(Loss(), found.evidence, found.controls, by=audit.by, duplicates=found.duplicates)
    )
    add_loss_accuracy(builder, loss, rates=found.rates, confidence=audit.confidence, alone=alone)
    add_epsilon_bounds(builder, scores, audit.claim, by=audit.by, confidence=audit.confidence)
    return [finding.name for finding in builder.findings if finding.name not in before]


def _withhold_unequal(builder: ResultBuilder, found: Inference, measured: Sequence[str]) -> None:
    """Take back findings of a membership result that compare sides of unequal amounts; last, for the gravest reason."""
    if isinstance(found.training, GroupTest) and not found.training.equal and found.units is not None:
        builder.withhold("auc_against_controls", code="unequal_amounts", reason=_UNEQUAL)
    if isinstance(found.membership, GroupTest) and not found.membership.equal:
        builder.withhold(*measured, code="unequal_amounts", reason=_UNEQUAL_MEMBERS)


def _add_group_test(builder: ResultBuilder, name: str, test: GroupTest | NotEnoughData | None, reading: str) -> None:
    """The finding of a p-value of "both groups score alike"; an interval would say less of few users."""
    if isinstance(test, NotEnoughData):
        builder.refuse(name, test)
    elif test is not None:
        n = {"users": test.above, "other_users": test.below}
        builder.add_p_value(name, test.p, n=n, method=test.method, reading=reading)


def _add_membership_notes(builder: ResultBuilder, found: Inference) -> None:
    """The notes of a membership result on amounts, controls and shadow models."""
    if found.units is None:
        builder.note("nobody_identified", _NOBODY_IDENTIFIED)
    else:
        _note_too_few_controls(builder, found)
        _note_amounts(builder, found, found.units)
    for side, name in ((found.records.candidates, "candidate"), (found.records.controls, "control")):
        infinite = 0 if side is None else int(np.isneginf(side.values).sum())
        if infinite and side is not None:
            builder.note(
                "infinite_scores",
                f"{infinite:,} of {len(side):,} {name} records have a score of −∞: the model gives one of their tokens "
                "probability zero. They count as the lowest, and so does the mean of their user.",
            )
    if SHADOW in found.signal.needs and POOL not in found.evidence.corpora and are_shadows_uneven(found.evidence):
        even = getattr(found.signal, "even", False)
        builder.note("shadows_trained_on_candidates_only", _EVEN_SHADOWS if even else _SHADOWS)


def _note_too_few_controls(builder: ResultBuilder, found: Inference) -> None:
    """Note in a membership result that the controls are too few to identify a single candidate."""
    audit, candidates, decisions, units = found.audit, found.scores.candidates, found.decisions, found.units
    if decisions is None or units is None:
        return
    users, needed = int(units.controls.max(initial=0)), count_controls_to_identify_one(found)
    if users >= needed:
        return
    which = (
        f"none of the {len(candidates):,} candidates can be identified"
        if decisions.correction == "holm"
        else f"one of the {len(candidates):,} candidates can be identified only if others are, too,"
    )
    alone = "" if decisions.correction == "holm" else " alone"
    builder.note(
        "too_few_controls_to_identify",
        f"With {users:,} control users, {which} at the significance level {audit.alpha:g} after correction; "
        f"{needed:,} control users would be enough to identify one{alone}.",
    )


def _note_amounts(builder: ResultBuilder, found: Inference, units: UnitTests) -> None:
    """Note in a membership result which candidates were compared at less than all they have."""
    cut = sum(len(stratum.members) for stratum in units.matching.strata if stratum.counts is not None)
    alone = len(units.matching.unmatched)
    if cut:
        builder.note(
            "amounts_matched",
            f"Compared at the same amount of records and tokens: {cut:,} of the {len(units.p):,} candidates, with "
            "controls that are cut to what they have"
            + (", and cut themselves where they have more than most controls" if units.draws.max(initial=1) > 1 else "")
            + ".",
        )
    if alone:
        builder.note(
            "candidates_without_comparable_controls",
            f"{alone:,} of the {len(units.p):,} candidates are compared with nobody: no control has their amount of "
            "records and tokens in the same period. Their p-value is 1.",
        )


def _note_seed(builder: ResultBuilder, found: Inference, p: float | None) -> None:
    """Note in a membership result that another seed may decide otherwise: p is near α and depends on random draws."""
    alpha, units = found.audit.alpha, found.units
    if units is None or p is None:
        return
    if not units.matching.equal:
        near = alpha / 2 < p <= 2 * alpha
        reason = (
            "As amounts are unequal, the records and controls that are compared are drawn at random (by the seed), so "
            "that another seed may decide otherwise. Do not choose among seeds: give more controls, or controls with "
            "as many records."
        )
    else:
        near = found.permuted and p == found.any_p and abs(p - alpha) <= 3 * (alpha * (1 - alpha) / DRAWS) ** 0.5
        reason = (
            f"It is estimated by {DRAWS:,} random permutations (by the seed), so that another seed may decide "
            "otherwise. Do not choose among seeds: give more candidates or controls."
        )
    if near:
        builder.note(
            "near_the_threshold",
            f"The p-value that decides, {p:.2g}, is near the significance level {alpha:g}. {reason}",
        )


def _build_tables(
    found: Inference, susceptibility: Susceptibility | None, columns: Mapping[str, Any]
) -> dict[str, pa.Table]:
    """The tables of a membership result: one row per candidate, and what figures are drawn from."""
    scores = found.scores
    candidates = scores.candidates.to_table(**columns)
    if scores.truth is not None:
        truth = build_array([scores.truth.get(name) for name in scores.candidates.records], pa.bool_())
        candidates = candidates.append_column("trained", truth)
    if susceptibility is not None:
        likely = build_array([susceptibility.likely.get(name) for name in scores.candidates.records], pa.float64())
        candidates = candidates.append_column("likely_memorised", likely)
    tables = {"candidates": candidates}
    if susceptibility is not None:
        tables["susceptibility"] = susceptibility.table
    if scores.controls is not None and found.decisions is not None:
        tables["controls"] = scores.controls.to_table()
        if columns and found.units is not None and found.units.has_uncut:
            rates = sorted(found.decisions.flagged)
            thresholds = [find_threshold(scores.controls, rate) for rate in rates]
            tables["thresholds"] = build_table({"fpr": build_array(rates, pa.float64()), "threshold": thresholds})
    if scores.has_both:
        tables["roc"] = build_roc_table(scores.members, scores.non_members)
    return tables


def _build_candidate_columns(found: Inference, corrected: Floats, identified: NDArray[np.bool_]) -> dict[str, Any]:
    """The columns of the table of candidates that say what was decided, and by how much data."""
    if found.decisions is None or found.units is None:
        return {}
    return {
        "p_value": found.decisions.p,
        "p_corrected": corrected,
        "identified": identified,
        **{f"flagged_at_fpr_{rate:g}": flags for rate, flags in found.decisions.flagged.items()},
        "records_compared": found.units.records,
        "controls_compared": found.units.controls,
    }
