"""How many control users a provenance audit needs: what a user can add, of which only a share calibrates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recollect.audits.provenance.decisions import Decisions
from recollect.audits.provenance.reference_users import MIN_USERS
from recollect.stats.requirements import ROUNDING_SLACK, required_controls

MAX_SHARE = 0.75
"""No larger share of the controls is suggested for calibration: the others train the shadow models."""


@dataclass(frozen=True, kw_only=True)
class ControlSupply:
    """The control users of a run, and which share of them calibrates.

    >>> supply = ControlSupply(controls=160, calibrating=40, share=0.25)
    >>> supply.count_controls(42), supply.find_share(42, usable=40)
    (166, 0.3)
    """

    controls: int
    """Users among the controls."""
    calibrating: int
    """Those of them who are held out from all shadow models."""
    share: float
    """The share that the audit holds out where it trains the shadows itself."""

    @property
    def is_divided_by_share(self) -> bool:
        """Whether the share decides who calibrates, and not shadow models that are given."""
        return self.calibrating == round(self.share * self.controls)

    def count_controls(self, needed: int) -> int:
        """How many control users it takes for so many calibration users, divided as they are now."""
        if not self.is_divided_by_share:
            return self.controls + max(0, needed - self.calibrating)
        enough = math.floor(needed / self.share)
        while round(self.share * (enough - 1)) >= needed:
            enough -= 1
        while round(self.share * enough) < needed:
            enough += 1
        return enough

    def find_share(self, needed: int, *, usable: int) -> float | None:
        """A share of the present controls, in steps of 0.05, that gives so many calibration users; None if none does.

        Args:
            needed: How many calibration users are needed.
            usable: How many of the present ones can be compared with, because they have as much text.
        """
        if not self.is_divided_by_share or not usable:
            return None
        wanted = needed * self.calibrating / usable / self.controls
        share = math.ceil(wanted / 0.05 - ROUNDING_SLACK) * 0.05
        enough = share <= MAX_SHARE + ROUNDING_SLACK and self.controls * (1 - share) >= MIN_USERS
        return round(share, 2) if enough else None


def count_needed_calibration(decisions: Decisions, *, alpha: float, together: int = 1) -> int:
    """How many calibration users it takes to find so many people who score above all of them, among all who are tested.

    Args:
        decisions: About each person.
        alpha: The false discovery rate.
        together: How many people score so.
    """
    people = max(1, int(decisions.valid.sum()))
    return required_controls(alpha * together / (people * (2 if decisions.cut.any() else 1)))


def count_expected_highest(decisions: Decisions) -> float:
    """How many people are expected to score above all calibration users if nobody's texts were used."""
    return float(np.sum(decisions.smallest[decisions.valid]))
