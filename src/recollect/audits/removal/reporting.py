"""The findings of the removal audit, and its verdict in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recollect.audits.common.builder import ResultBuilder
from recollect.audits.removal.calibrated import Case, Verdict
from recollect.errors import NotEnoughData
from recollect.results.result import Finding
from recollect.stats.auc import auc

if TYPE_CHECKING:
    from recollect.audits.removal.audit import RemovalAudit
    from recollect.audits.removal.judging import Judged

UNTESTED: Final = (
    "How members look is known from calibration models alone: the target is taken to hold what it was trained on about "
    "as firmly. Had it been trained far more weakly than the recipe says, a set that is still in could be called gone.",
    "Only answers were looked at: what the weights may hold beyond them was not tested.",
    "Controls are taken at their word: a control that the target has seen makes the set look removed.",
)


_DAMAGED = NotEnoughData(
    "The target is damaged as a whole, and calibration models do not show how its members look.",
    do="Compare it with a model that was retrained.",
)


def add_findings(builder: ResultBuilder, found: Judged, audit: RemovalAudit) -> None:
    """How much is still in, both p-values, the power of both verdicts, and the rates that they come from."""
    standing, confidence = found.found, audit.confidence
    if found.damaged:
        builder.refuse("fraction_still_in", _DAMAGED)
    elif found.case is not None:
        _add_case(builder, found.case, audit)
    builder.try_estimate(
        "auc_against_controls",
        lambda: auc(standing.audited, standing.controls, confidence=confidence),
        unit="probability",
        reading="How often the model is surer of an audited record than of a control; 0.5 if it saw neither and they "
        "are alike, less if it was pushed away from the set.",
    )
    n = {"audited": len(standing.audited), "controls": len(standing.controls)}
    for name, value, way in (("p_above", found.p_above, "above"), ("p_below", found.p_below, "below")):
        reading = f"How often a set that was never in would score so far {way} the controls, were it like them."
        builder.findings.append(p_finding(name, value, n, method="Mann–Whitney", reading=reading))


def _add_case(builder: ResultBuilder, case: Case, audit: RemovalAudit) -> None:
    """What the rates of unsure answers say."""
    confidence = audit.confidence
    builder.try_estimate(
        "fraction_still_in",
        lambda: case.share_in(confidence),
        unit="share",
        reading="The share of the audited records that the model still shows; 0 if all were removed.",
    )
    n = {"audited": case.size, "members": int(case.members.size), "never_seen": int(case.never.size)}
    for name, value, reading in (
        ("p_still_there", case.p_still, "How often a set of which nothing is in would look so well known."),
        ("p_gone", case.p_gone, f"How often a set of which {case.tolerance:.0%} or more is in would look so unknown."),
        ("p_all_in", case.p_removed, "How often a set that is wholly in would look so unknown."),
    ):
        method = "mixture, MOVER of exact intervals" if name == "p_gone" else "Fisher's exact test of unsure answers"
        if name == "p_still_there" and case.spent < 1:
            method += ", corrected for the two lines that were tried"
        builder.findings.append(p_finding(name, value, n, method=method, reading=reading))
    still, gone = case.power()
    for name, value, said in (("power_still_there", still, "still there"), ("power_gone", gone, "gone")):
        builder.findings.append(
            Finding(
                name=name,
                value=value,
                why_no_interval="It is computed from the rates, whose intervals are given.",
                unit="probability",
                n=n,
                method="binomial",
                reading=f"How often a set of this size that is wholly {said} would be called so.",
            )
        )
    for name, rate, whose in (
        ("unsure_audited", case.rate, "The target about the audited records"),
        ("unsure_never_seen", case.never, "The target about records like these that it never saw"),
        ("unsure_members", case.members, "Calibration models about records that they were trained on"),
    ):
        builder.try_estimate(
            name,
            lambda rate=rate: rate.estimate(confidence),  # type: ignore[misc]
            unit="share",
            reading=f"{whose}: how often the score lies below the line that members hardly ever fall under.",
        )


def p_finding(name: str, value: float, n: dict[str, int], *, method: str, reading: str) -> Finding:
    """A p-value."""
    return Finding(
        name=name,
        value=value,
        why_no_interval="A p-value is itself a statement about chance.",
        unit="probability",
        n=n,
        method=method,
        reading=reading,
    )


def said_plainly(verdict: Verdict, found: Judged, audit: RemovalAudit) -> str:
    """One sentence that a lawyer can read."""
    many = f"{len(found.found.audited):,} audited records"
    case = found.case
    share = case.share_in(audit.confidence) if case is not None and case.told else None
    if verdict == "still there":
        by_ranks = found.damaged or case is None or case.p_still > audit.level
        if share is None or share.interval is None or case is None or by_ranks:
            return f"Still there: the model is surer of the {many} than of the controls (p = {found.p_above:.2g})."
        low, high = share.interval.low, share.interval.high
        return (
            f"Still there: about {share.value:.0%} of the {many} are still in the model, between {low:.0%} and "
            f"{high:.0%} (p = {case.p_still:.2g})."
        )
    if verdict == "over-unlearned":
        return (
            f"Over-unlearned: the model is less sure of the {many} than of records it never saw "
            f"(p = {found.p_below:.2g}), which itself gives away that they were there."
        )
    if verdict == "gone":
        return f"Gone: no sign of the {many}; {_bound(found, audit)} of them can still be in."
    return f"Cannot tell with {many}; {_wanted(found)}."


def _bound(found: Judged, audit: RemovalAudit) -> str:
    """The largest share that may still be in."""
    cases = [case for case in (found.case, found.whole) if case is not None and case.told]
    limits = [limit.high for case in cases if (limit := case.share_in(1 - 2 * audit.level).interval) is not None]
    return f"at most {min(limits):.0%}"


def _wanted(found: Judged) -> str:
    """What would do."""
    if found.case is None:
        return "a recipe for calibration models would tell how members look"
    if found.damaged:
        return "the target is damaged, and calibration models do not show how its members look"
    if found.near is None and found.shifted:
        return "controls of the same kind as the audited records would do"
    enough = found.case.enough()
    if enough is None or enough <= found.case.size:
        return "more controls, or calibration models trained as the target was, would do"
    return f"about {enough:,} would do"
