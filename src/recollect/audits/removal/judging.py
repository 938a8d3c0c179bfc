"""What `calibrated` says of a whole set: how much of it is still in, both tests, their power, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from recollect.audits.common.builder import ResultBuilder, build_refusal
from recollect.audits.common.comparability import SHIFT_ALPHA, measure_separability, sample_records
from recollect.audits.removal.calibrated import Case, Verdict
from recollect.audits.removal.lines import Lines, lines_of, with_nothing_known
from recollect.audits.removal.near import neighbours
from recollect.audits.removal.rates import Flags, Near
from recollect.audits.removal.reporting import UNTESTED, add_findings, said_plainly
from recollect.audits.removal.units import Standing, standing, unit_of
from recollect.corpora.cohorts import Unit
from recollect.errors import NotEnoughData
from recollect.results.result import Note, Outcome, Result
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, SHADOW, TARGET, Evidence
from recollect.stats.comparisons import mann_whitney
from recollect.stats.significance import Alternative, bonferroni

if TYPE_CHECKING:
    from recollect.audits.removal.audit import RemovalAudit

FEWEST_NEIGHBOURS, MOST_NEIGHBOURS, NEIGHBOURS_IN_ALL = 3, 10, 500
"""The nearest are the most alike, but of few audited records too few controls would be near to tell a rate."""
OVER = 0.2
"""A set is called over-unlearned at this share of α: it is a second way to be wrong about a set that is gone."""
OUTCOMES: Mapping[Verdict, Outcome] = {
    "still there": "found",
    "over-unlearned": "found",
    "gone": "not_found",
    "cannot tell": "inconclusive",
}
_WAYS: tuple[Alternative, ...] = ("less", "greater")
DAMAGED = (
    "The target is far less sure of records it never saw than calibration models are: it was damaged as a whole, or "
    "trained otherwise. It is not called clean."
)
HELD_BELOW = (
    "Far fewer answers about the set are plainly wrong than about records never seen, although as many are unsure: the "
    "target may hold its members less firmly than calibration models do. The set is not called gone."
)
NO_SHARE_FITS = (
    "No share still in explains how sure the target is of the set: less than of records it never saw, or more than "
    "calibration models are of their members. The share given is the nearest one; its interval has no width because "
    "every other share fits even worse, not because it is known so well."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """All that a verdict rests on."""

    found: Standing
    near: Near | None
    case: Case | None
    """None if no audited record is like any control, or no calibration model says how members look."""
    low: Case | None
    """What answers below a far lower line say; None if there is none."""
    whole: Case | None
    """The same with nothing known of records never seen: rules out shares still in whatever the set is like."""
    line: float
    """The score below which a model is unsure."""
    p_below: float
    """How often a set of which nothing was ever in would score so far below the controls."""
    p_above: float
    """How often one would score so far above them."""
    shifted: bool
    """Whether the set and the controls differ, whatever a model says of them."""
    level: float

    @property
    def unsure(self) -> Flags:
        """Of which audited units the target is unsure."""
        return np.asarray(self.found.audited.values < self.line)

    @cached_property
    def damaged(self) -> bool:
        """Whether something has spoilt the target as a whole, as far as controls like the audited records tell."""
        return self.found.damaged(None if self.near is None or self.near.far.all() else self.near.nearest > 0)

    @property
    def verdict(self) -> Verdict:
        """What can be said."""
        if self.case is None:
            return self._without_members()
        if self._still_there(self.case):
            return "still there"
        if not self.shifted and self.p_below <= OVER * self.level:
            return "over-unlearned"
        if self.damaged or (self.near is None and self.p_above <= self.level):
            return "cannot tell"
        cleared = self.whole is not None and self.whole.excludes(self.whole.tolerance)
        return "gone" if cleared or (self.case.verdict == "gone" and not self.held_below) else "cannot tell"

    @property
    def held_below(self) -> bool:
        """Whether the set looks gone, but not far down, where a target that holds its members weakly shows them."""
        low, looks_gone = self.low, self.case is not None and self.case.verdict == "gone"
        return looks_gone and low is not None and low.told and low.likeliest >= low.tolerance

    def _still_there(self, case: Case) -> bool:
        """Whether the set is known too well; without neighbours all ranks are a second test, which is paid for."""
        if self.near is not None:
            return case.verdict == "still there"
        tests = [self.p_above, *([case.p_still] if case.told else [])]
        return not self.shifted and float(bonferroni(tests).min()) <= self.level

    def _without_members(self) -> Verdict:
        """What can be said if nobody knows how members look: never that a set is gone."""
        cleared = self.whole is not None and self.whole.excludes(self.whole.tolerance)
        if self.shifted:
            return "gone" if cleared else "cannot tell"
        if self.p_above <= self.level:
            return "still there"
        if self.p_below <= OVER * self.level:
            return "over-unlearned"
        return "gone" if cleared else "cannot tell"


def judged(audit: RemovalAudit, evidence: Evidence) -> Result:
    """The result of an audit whose evidence is complete."""
    builder = ResultBuilder(audit)
    try:
        found, notes = _judged(audit, evidence, builder)
    except NotEnoughData as refusal:
        return refused(audit, refusal)
    add_findings(builder, found, audit)
    verdict = found.verdict
    builder.notes += [*notes, *unexplained(None if found.damaged else found.case, audit.confidence)]
    builder.dropped |= found.found.dropped
    builder.tables |= _tables(found)
    return builder.build(
        verdict=said_plainly(verdict, found, audit),
        outcome=OUTCOMES[verdict],
        code=None if verdict != "cannot tell" else "target_damaged" if found.damaged else "no_power",
        untested=UNTESTED,
        settings={**audit.settings, "said": verdict},
    )


def _judged(audit: RemovalAudit, evidence: Evidence, builder: ResultBuilder) -> tuple[Judged, list[Note]]:
    """All that the verdict rests on, and what a reader ought to know of it.

    Raises:
        NotEnoughData: There are too few records to compare.
    """
    calibrated, unit = bool(evidence.playing(SHADOW)), unit_of(evidence)
    if not calibrated and not evidence.playing(REFERENCE):
        raise NotEnoughData(
            f"The calibration set has {len(evidence.corpora[CONTROLS])} records, too few to be halved.",
            do="Give more controls.",
        )
    classifier = evidence.models[TARGET].kind == "classifier"
    found = standing(evidence, unit=unit, compared=not (classifier and calibrated))
    near = _near(audit, evidence, found, unit)
    shifted, notes = (near.shifted, _remarks(near)) if near is not None else guarded(evidence, audit, builder)
    sides = found.audited.values, found.controls.values
    below, above = (mann_whitney(*sides, alternative=way).p for way in _WAYS)
    lines = lines_of(audit, found, near) if calibrated else Lines(line=-np.inf, case=None, low=None)
    judged_so = Judged(
        found=found,
        near=near,
        case=lines.case,
        low=lines.low,
        whole=with_nothing_known(audit, found, lines.line) if calibrated else None,
        line=lines.line,
        p_below=below,
        p_above=above,
        shifted=shifted,
        level=audit.level,
    )
    if judged_so.damaged:
        notes.append(Note(code="target_damaged", text=DAMAGED))
    if judged_so.held_below and judged_so.verdict == "cannot tell":
        notes.append(Note(code="weakly_memorised", text=HELD_BELOW))
    return judged_so, notes


def _near(audit: RemovalAudit, evidence: Evidence, found: Standing, unit: Unit) -> Near | None:
    """The controls that stand for each audited record; None if all do alike."""
    wanted = NEIGHBOURS_IN_ALL // len(found.audited)
    auto = min(MOST_NEIGHBOURS, max(FEWEST_NEIGHBOURS, wanted))
    count = auto if audit.neighbours is None else audit.neighbours
    labelled = all(record.kind == "labelled" for record in evidence.corpora[AUDITED])
    if not count or unit != "record" or (audit.neighbours is None and not labelled):
        return None
    parts = []
    for part, scores in ((AUDITED, found.audited), (CONTROLS, found.controls)):
        by_id = {record.id: record for record in evidence.corpora[part]}
        parts.append([by_id[name] for name in scores.records])
    return neighbours(parts[0], parts[1], count)


def unexplained(case: Case | None, confidence: float) -> list[Note]:
    """A word on a share that explains nothing."""
    fits_none = Note(code="no_share_fits", text=NO_SHARE_FITS)
    return [fits_none] if case is not None and case.told and not case.shares_left(confidence) else []


def _remarks(near: Near) -> list[Note]:
    """What neighbours show of the set."""
    notes = list[Note]()
    if far := int(near.far.sum()):
        text = (
            f"{far:,} of {len(near.far):,} audited records are like no control and are not compared with any; they "
            "can only speak for removal."
        )
        notes.append(Note(code="unlike_any_control", text=text))
    if near.shifted:
        text = (
            "The audited records are nearer to some controls, or farther from all, than controls are from each other: "
            "the calibration set is of another kind. The verdict allows for that."
        )
        notes.append(Note(code="controls_of_another_kind", text=text))
    return notes


def guarded(evidence: Evidence, audit: RemovalAudit, builder: ResultBuilder) -> tuple[bool, list[Note]]:
    """Whether the set and the controls can be told apart without the model, and what to say of it."""
    sides = [sample_records(evidence.corpora[part]) for part in (AUDITED, CONTROLS)]
    try:
        told = measure_separability(sides[0], sides[1], confidence=audit.confidence)
    except NotEnoughData as refusal:
        builder.refuse("blind_auc", refusal)
        return False, []
    builder.try_estimate(
        "blind_auc",
        lambda: told.effect,
        unit="probability",
        reading="How well a bag-of-words classifier, which knows nothing of the model, tells the query set from the "
        "controls; it ought to be 0.5.",
    )
    if told.p > SHIFT_ALPHA:
        return False, []
    text = (
        f"The query set and the controls can be told apart without the model (AUC {told.effect.value:.2f}): that the "
        "set scores higher proves nothing, and it is not called still there."
    )
    return True, [Note(code="told_apart_without_model", text=text)]


def refused(audit: RemovalAudit, refusal: NotEnoughData) -> Result:
    """What is said if there is too little to judge by."""
    return build_refusal(audit, refusal, finding="fraction_still_in", untested=UNTESTED, settings=audit.settings)


def _tables(found: Judged) -> dict[str, pa.Table]:
    """Every audited unit, the scores that it is compared with, and how large a set would be told."""
    far = np.zeros(len(found.unsure), dtype=np.bool_) if found.near is None else found.near.far
    members = found.found.members
    return {
        "audited": found.found.audited.table(unsure=found.unsure, far=far),
        "controls": found.found.controls.table(unsure=found.found.controls.values < found.line),
        "members": members.table(unsure=members.values < found.line),
        "power": pa.table({} if found.case is None else found.case.power_curve()),
    }
