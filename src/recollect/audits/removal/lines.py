"""The lines below which answers count as unsure, and what the answers about a set say beside each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from recollect.audits.removal.calibrated import Case
from recollect.audits.removal.rates import Near, Rate, line, low_line, never_seen
from recollect.audits.removal.units import Standing

if TYPE_CHECKING:
    from recollect.audits.removal.audit import RemovalAudit

SPENT_LOW = 0.2
"""The share of α that is spent on the low line."""
ALL_BUT_SURE = Rate(value=1.0, size=1e9)
"""Records that no control is like: for all we know, the target would be unsure of each, had it never seen them."""


@dataclass(frozen=True, kw_only=True)
class Lines:
    """The line below which answers are unsure, and what they say."""

    line: float
    case: Case | None
    low: Case | None
    """What a far lower line says, where there is one."""


def lines_of(audit: RemovalAudit, found: Standing, near: Near | None) -> Lines:
    """With neighbours there is a second line, for targets that hold members less firmly than calibration models do.

    It is the one that counts if it speaks for the set by itself, and more than the first. Without neighbours ranks are
    the second test.
    """
    level = line(found.members.values, found.controls.values)
    if near is not None and near.far.all():
        return Lines(line=level, case=None, low=None)
    under = np.inf if near is None else low_line(found.controls.values, near.nearest, int((~near.far).sum()))
    if under >= level:
        return Lines(line=level, case=_at(level, audit, found, near), low=None)
    usual = replace(_at(level, audit, found, near), spent=1 - SPENT_LOW)
    low = replace(_at(under, audit, found, near), spent=SPENT_LOW)
    speaks = low.p_still * SPENT_LOW <= audit.level and low.p_still < usual.p_still
    return Lines(line=under if speaks else level, case=low if speaks else usual, low=low)


def _at(level: float, audit: RemovalAudit, found: Standing, near: Near | None) -> Case:
    """The audited records that are like some control, beside members and records never seen."""
    unsure, controls = found.audited.values < level, found.controls.values < level
    compared = unsure if near is None else unsure[~near.far]
    return Case(
        unsure=int(compared.sum()),
        size=len(compared),
        members=of_members(found, level),
        never=never_seen(controls, near),
        least=never_seen(controls, near, plain=True) if near is not None and near.shifted else None,
        alpha=audit.level,
        tolerance=audit.tolerance,
    )


def of_members(found: Standing, level: float) -> Rate:
    """How often calibration models are unsure of their members; a unit counts once, however many it trained."""
    unsure = found.members.values < level
    model = np.array([name.split("/", 1)[0] for name in found.members.records])
    each = tuple(float(unsure[model == name].mean()) for name in np.unique(model))
    return Rate(value=float(unsure.mean()), size=float(len(set(found.members.users))), models=each)


def with_nothing_known(audit: RemovalAudit, found: Standing, level: float) -> Case:
    """All audited records, with nothing known of records never seen."""
    unsure = int((found.audited.values < level).sum())
    sizes = {"unsure": unsure, "size": len(found.audited), "members": of_members(found, level)}
    return Case(**sizes, never=ALL_BUT_SURE, alpha=audit.level, tolerance=audit.tolerance)  # type: ignore[arg-type]
