"""Every person's removal: a conformal p-value against controls and against members, corrected for many people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.audits.common.builder import ResultBuilder
from recollect.audits.removal.calibrated import Verdict
from recollect.audits.removal.judging import OVER, guarded, refused
from recollect.audits.removal.reporting import UNTESTED
from recollect.audits.removal.units import standing
from recollect.errors import NotEnoughData, PlanError
from recollect.results.result import Finding, Note, Outcome, Result
from recollect.signals.evidence import AUDITED, CONTROLS, SHADOW, Evidence
from recollect.signals.scores import Scores
from recollect.stats.owners import Floats
from recollect.stats.significance import conformal_p, holm
from recollect.stats.support import controls_for_p, require

if TYPE_CHECKING:
    from recollect.audits.removal.audit import RemovalAudit

VERDICTS: tuple[Verdict, ...] = ("still there", "gone", "over-unlearned", "cannot tell")


def judged_by_user(audit: RemovalAudit, evidence: Evidence) -> Result:
    """The result for every person, each told about at most α wrongly over all of them together."""
    if any(record.user is None for part in (AUDITED, CONTROLS) for record in evidence.corpora[part]):
        raise PlanError("Users are to be judged, and some records have none.", do="Name the user column.")
    builder = ResultBuilder(audit)
    try:
        shadows = len(evidence.playing(SHADOW))
        require(shadows, 2, of="calibration models", purpose="A verdict about a person", code="too_few_shadows")
        found = standing(evidence, unit="user", compared=True)
        least = controls_for_p(audit.level)
        controls = len(found.controls)
        require(controls, least, of="control users", purpose="A verdict about a person", code="too_few_controls")
    except NotEnoughData as refusal:
        return refused(audit, refusal)
    shifted, notes = guarded(evidence, audit, builder)
    # the same control under several models counts once: it owns all its scores
    tests = {
        "p_still_there": conformal_p(found.audited.values, found.controls),
        "p_gone": conformal_p(-found.audited.values, found.members.with_values(-found.members.values)),
        "p_below": conformal_p(-found.audited.values, found.controls.with_values(-found.controls.values)),
    }
    verdicts = _verdicts(tests, audit.level, shifted=shifted)
    if found.damaged():
        verdicts[verdicts == "gone"] = "cannot tell"
        text = "The target was damaged as a whole, or trained otherwise: nobody is called gone."
        notes.append(Note(code="target_damaged", text=text))
    needed = controls_for_p(audit.level, tests=len(found.audited))
    if len(found.controls) < needed:
        text = (
            f"With {len(found.controls):,} control users none of {len(found.audited):,} people can be told about alone "
            f"at {audit.level:g} after correction; {needed:,} would do."
        )
        notes.append(Note(code="too_few_controls_to_name", text=text))
    builder.findings.extend(_counts(verdicts, found.controls, audit))
    builder.notes += notes
    builder.dropped |= found.dropped
    builder.tables |= {"users": _table(found.audited, tests, verdicts), "controls": found.controls.table()}
    outcome = _outcome(verdicts)
    return builder.build(
        verdict=_said(verdicts),
        outcome=outcome,
        code=None if outcome != "inconclusive" else "target_damaged" if found.damaged() else "no_power",
        untested=UNTESTED,
        settings=audit.settings,
    )


def _verdicts(tests: dict[str, Floats], level: float, *, shifted: bool) -> NDArray[np.str_]:
    """What can be said of each person."""
    corrected = {name: holm(p) for name, p in tests.items()}
    said = np.full(len(tests["p_gone"]), "cannot tell", dtype="<U16")
    said[(corrected["p_gone"] <= level) & (tests["p_still_there"] > level)] = "gone"
    if not shifted:
        said[corrected["p_below"] <= OVER * level] = "over-unlearned"
        said[corrected["p_still_there"] <= level] = "still there"
    return said


def _counts(verdicts: NDArray[np.str_], controls: Scores, audit: RemovalAudit) -> list[Finding]:
    """How many people there are of each verdict."""
    return [
        Finding(
            name=f"users_{verdict.replace(' ', '_').replace('-', '_')}",
            value=int((verdicts == verdict).sum()),
            why_no_interval="It is a count of decisions, each of which pays for all others.",
            unit="users",
            n={"users": len(verdicts), "control_users": len(controls)},
            method="conformal p-values against control users and member users, Holm",
            reading=f"People whose records are {verdict}: any of them wrongly so with a chance of {audit.level:g}.",
        )
        for verdict in VERDICTS
    ]


def _outcome(verdicts: NDArray[np.str_]) -> Outcome:
    """Whether anybody is still there."""
    if np.isin(verdicts, ["still there", "over-unlearned"]).any():
        return "found"
    return "not_found" if (verdicts == "gone").all() else "inconclusive"


def _said(verdicts: NDArray[np.str_]) -> str:
    """One sentence that a lawyer can read."""
    counts = {verdict: int((verdicts == verdict).sum()) for verdict in VERDICTS}
    told = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items() if count)
    return f"Of {len(verdicts):,} people: {told}."


def _table(audited: Scores, tests: dict[str, Floats], verdicts: NDArray[np.str_]) -> pa.Table:
    """One row per person."""
    corrected = {f"{name}_corrected": holm(p) for name, p in tests.items()}
    return audited.table(**tests, **corrected).append_column("said", pa.array(verdicts.tolist()))
