"""What scores add up to: who stands out, how well that can be told, and what a reader ought to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from recollect.audits.common.builder import ResultBuilder
from recollect.audits.common.comparability import SHIFT_ALPHA, measure_separability, sample_records
from recollect.audits.membership.accuracy import add_accuracy, add_baseline, roc_table
from recollect.audits.membership.bounds import CANARIES, CANARY_TEXTS, add_bounds, add_canary_bound
from recollect.audits.membership.deciding import Decisions, candidate_table, decide, threshold_table
from recollect.audits.membership.exposed import add_exposed
from recollect.audits.membership.fleet import POOL, POPULATION
from recollect.audits.membership.standing import Standing, standing
from recollect.audits.membership.susceptible import Susceptibility
from recollect.corpora.canaries.manifest import Canaries
from recollect.errors import NotEnoughData
from recollect.results.result import Finding, Note, Outcome, Result
from recollect.signals.evidence import AUDITED, CONTROLS, SHADOW, Evidence
from recollect.signals.loss import Loss
from recollect.signals.scores import Scores
from recollect.signals.signal import Signal, scored
from recollect.stats.auc import auc
from recollect.stats.comparisons import mann_whitney
from recollect.stats.intervals import proportion
from recollect.stats.owners import Owned
from recollect.stats.significance import holm
from recollect.stats.support import controls_for_p

if TYPE_CHECKING:
    from recollect.audits.membership.audit import MembershipAudit

_TRAINING = "How often candidates of whom none was trained on would, together, score so far above the controls."
_MEMBERSHIP = "How often a model that saw none of them would put those it was trained on so far above the others."
_UNTESTED = (
    "P-values compare candidates with the controls: they hold if candidates that were not trained on are like the "
    "controls in all else.",
    "A candidate that is not flagged may have been trained on all the same.",
)


@dataclass(frozen=True, kw_only=True)
class _Case:
    """All that a verdict rests on."""

    audit: MembershipAudit
    found: Standing
    decided: Decisions
    together: float | None
    """The p-value of "taken together, the candidates are like the controls"; with the truth: the trained are like the
    others."""
    auc: Finding | None
    """How well members are told, where the truth is known."""

    @property
    def identified(self) -> int:
        """How many candidates stand out after correction."""
        return int(np.count_nonzero(self.decided.corrected <= self.audit.alpha))

    @property
    def outcome(self) -> Outcome:
        """Whether the model gives away who was in training."""
        if self.found.trained is not None:
            if self.together is None:
                return "inconclusive"
            return "found" if self.together <= self.audit.alpha else "not_found"
        least = float(self.decided.corrected.min(initial=1.0))
        tests = [least, *([] if self.together is None else [self.together])]
        if self.together is None and not self.decided.flagged:
            return "inconclusive"
        return "found" if float(holm(tests).min()) <= self.audit.alpha else "not_found"


def judged(audit: MembershipAudit, signal: Signal, evidence: Evidence) -> Result:
    """The result of an audit whose evidence is complete."""
    controls = POPULATION if POPULATION in evidence.corpora else CONTROLS
    found = standing(signal, evidence, controls, by=audit.by)
    rates = sorted(set(audit.fpr))
    decided = decide(found, rates=rates, correction=audit.correction)
    builder = ResultBuilder(audit)
    for rate, refusal in decided.refused.items():
        builder.refuse(f"flagged_at_fpr_{rate:g}", refusal)
    together = _add_blind(builder, audit, found, decided)
    if found.trained is not None:
        users = found if audit.by == "user" else found.by_user()
        together = _tested(builder, "membership_p", users.members, users.others, _MEMBERSHIP)
        add_accuracy(builder, found, decided, confidence=audit.confidence, rates=rates)
        alone = signal.name == "loss"
        loss = found if alone else standing(Loss(), evidence, controls, by=audit.by)
        add_baseline(builder, loss, rates=rates, confidence=audit.confidence, alone=alone)
        add_bounds(builder, found, audit.claim, rate=max(rates), confidence=audit.confidence)
    looks = add_exposed(builder, audit, evidence, found, decided)
    _add_canaries(builder, audit, signal, evidence)
    guard = _guard(builder, audit, evidence, found, controls)
    builder.notes += [*_support(audit, found, decided), *_unlike_shadows(signal, evidence), *guard]
    builder.dropped |= found.dropped or {}
    builder.tables |= _tables(audit, found, decided, looks)
    named = {finding.name: finding for finding in builder.findings}
    case = _Case(audit=audit, found=found, decided=decided, together=together, auc=named.get("auc"))
    return builder.build(
        verdict=_verdict(case, signal),
        outcome=case.outcome,
        code="too_few_records" if case.outcome == "inconclusive" else None,
        untested=_UNTESTED,
        settings={**audit.settings, "signal": signal.name},
    )


def _tables(
    audit: MembershipAudit, found: Standing, decided: Decisions, looks: Susceptibility | None
) -> dict[str, pa.Table]:
    """The longer tables."""
    candidates = candidate_table(found, decided, audit.alpha)
    if looks is not None:
        likely = pa.array([looks.likely.get(record) for record in found.candidates.records], pa.float64())
        candidates = candidates.append_column("likely_memorised", likely)
    tables = {
        "candidates": candidates,
        **({} if looks is None else {"exposed": looks.table}),
        "controls": found.controls.table(),
        "thresholds": threshold_table(found, decided),
    }
    return tables if found.trained is None else {**tables, "roc": roc_table(found)}


def _add_blind(builder: ResultBuilder, audit: MembershipAudit, found: Standing, decided: Decisions) -> float | None:
    """What can be said without the truth: how many stand out, alone and together. Gives the p-value of the latter."""
    candidates, confidence = found.candidates, audit.confidence
    for rate, flagged in decided.flagged.items():
        builder.try_estimate(
            f"flagged_at_fpr_{rate:g}",
            lambda flagged=flagged: proportion(  # type: ignore[misc]
                Owned(flagged, candidates.users), of="candidates", confidence=confidence
            ),
            unit="share",
            reading=f"Candidates that score above all but {rate:.1%} of the controls; were none of them trained on, "
            f"{rate:.1%} would be expected.",
        )
    builder.findings.append(_identified(audit, found, decided))
    builder.try_estimate(
        "auc_against_controls",
        lambda: auc(candidates, found.controls, confidence=confidence),
        unit="probability",
        reading="How often a candidate scores above a control; 0.5 if none of the candidates was trained on.",
    )
    return _tested(builder, "training_p", candidates.by_user(), found.controls.by_user(), _TRAINING)


def _identified(audit: MembershipAudit, found: Standing, decided: Decisions) -> Finding:
    """How many candidates stand out on their own."""
    chance = "any is wrongly named" if decided.correction == "holm" else "a share of those named is wrong"
    return Finding(
        name="identified",
        value=int(np.count_nonzero(decided.corrected <= audit.alpha)),
        why_no_interval="It is a count of decisions, each of which pays for all others.",
        unit=f"{audit.by}s",
        n={"candidates": len(found.candidates), "controls": len(found.controls)},
        method=f"conformal p-values against the controls, {decided.correction}",
        reading=f"Candidates that stand out on their own after correction for their number; {chance} with probability "
        f"or expectation of at most {audit.alpha:g}.",
    )


def _tested(builder: ResultBuilder, name: str, above: Scores, below: Scores, reading: str) -> float | None:
    """The p-value of "both sides score alike", by one score of each user; an interval would say less of few users."""
    try:
        p = mann_whitney(above, below).p
    except NotEnoughData as refusal:
        builder.refuse(name, refusal)
        return None
    n = {"users": len(above), "other_users": len(below)}
    builder.add_p_value(name, p, n=n, method="Mann–Whitney of users' mean scores", reading=reading)
    return p


def _add_canaries(builder: ResultBuilder, audit: MembershipAudit, signal: Signal, evidence: Evidence) -> None:
    """The bound from planted canaries, where a manifest was given."""
    if CANARY_TEXTS in evidence.corpora:
        scores = scored(signal, evidence, CANARY_TEXTS)
        add_canary_bound(builder, Canaries.load(evidence.files[CANARIES]), scores, audit.claim, audit.confidence)


def _support(audit: MembershipAudit, found: Standing, decided: Decisions) -> list[Note]:
    """How many controls it would take to name a single candidate."""
    there = len(set(found.controls.users))
    needed = controls_for_p(audit.alpha, tests=max(1, len(found.candidates)))
    if there >= needed:
        return []
    how = "any" if decided.correction == "holm" else "one alone"
    text = (
        f"With {there:,} control users, {how} of the {len(found.candidates):,} candidates cannot be named at "
        f"{audit.alpha:g} after correction; {needed:,} would do."
    )
    return [Note(code="too_few_controls_to_name", text=text)]


def _unlike_shadows(signal: Signal, evidence: Evidence) -> list[Note]:
    """A warning if shadows were given: they know candidates and controls unequally well."""
    if SHADOW not in signal.needs or POOL in evidence.corpora:
        return []
    text = (
        "The shadows were given, and saw some of the candidates and no control: p-values hold only as far as a record "
        "that shadows saw scores like one that they did not. Train shadows with a recipe to have both treated alike."
    )
    return [Note(code="shadows_saw_candidates_only", text=text)]


def _guard(
    builder: ResultBuilder, audit: MembershipAudit, evidence: Evidence, found: Standing, controls: str
) -> list[Note]:
    """A warning if the two sides that were compared can be told apart without the model."""
    audited = evidence.corpora[AUDITED]
    if found.trained is None:
        sides, named = (sample_records(audited), sample_records(evidence.corpora[controls])), "candidates and controls"
    else:
        units = {wanted: {r for r, trained in found.trained.items() if trained is wanted} for wanted in (True, False)}
        by_user = audit.by == "user"
        sides = tuple(  # type: ignore[assignment]
            sample_records(audited, frozenset(r.id for r in audited if (r.owner if by_user else r.id) in units[wanted]))
            for wanted in (True, False)
        )
        named = "candidates that were trained on and those that were not"
    try:
        told = measure_separability(*sides, confidence=audit.confidence)
    except NotEnoughData as refusal:
        builder.refuse("blind_auc", refusal)
        return []
    builder.try_estimate(
        "blind_auc",
        lambda: told.effect,
        unit="probability",
        reading=f"How well a bag-of-words classifier, which knows nothing of the model, tells {named} apart; it "
        "ought to be 0.5.",
    )
    if told.p > SHIFT_ALPHA:
        return []
    text = (
        f"The {named} can be told apart without the model (AUC {told.effect.value:.2f} by their words alone): what is "
        "found here may measure that, and not membership."
    )
    return [Note(code="told_apart_without_model", text=text)]


def _verdict(case: _Case, signal: Signal) -> str:
    """One sentence that a lawyer can read."""
    many, unit = len(case.found.candidates), f"{case.audit.by}s"
    named = f"{case.identified:,} of {many:,} candidate {unit} stand out on their own"
    if case.outcome == "inconclusive":
        return f"Cannot tell: {many:,} candidate {unit} and {len(case.found.controls):,} controls are too few."
    if case.auc is not None:
        interval = case.auc.interval or (0.0, 1.0)
        told = f"AUC {case.auc.value:.2f}, between {interval[0]:.2f} and {interval[1]:.2f}, by the signal {signal.name}"
        if case.outcome == "found":
            return f"The model gives away what it was trained on ({told}); {named}."
        return f"No sign that the model gives away what it was trained on ({told}); {named}."
    if case.outcome == "found":
        p = (
            ""
            if case.together is None
            else f"taken together they score above the controls with p = {case.together:.2g}; "
        )
        return f"Some of the {many:,} candidate {unit} were in the training data: {p}{named}."
    return f"No sign that any of the {many:,} candidate {unit} was in the training data: they score like the controls."
