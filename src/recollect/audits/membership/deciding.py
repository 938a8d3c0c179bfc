"""Decisions: a p-value for every candidate against the controls, corrected for many, and flags at each rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.audits.membership.standing import Standing
from recollect.errors import NotEnoughData
from recollect.signals.scores import Floats, Scores
from recollect.stats.significance import benjamini_hochberg, conformal_p, holm

Correction = Literal["auto", "benjamini-hochberg", "holm"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """What can be said of every candidate without knowing the truth."""

    p: Floats
    """How rarely a control scores as high, in the order of the candidates."""
    corrected: Floats
    """The same after correction for the number of candidates."""
    correction: Literal["benjamini-hochberg", "holm"]
    flagged: Mapping[float, NDArray[np.bool_]]
    """At each false positive rate that the controls support, who is flagged."""
    refused: Mapping[float, NotEnoughData]
    """The rates that they do not support."""


def decide(found: Standing, *, rates: Sequence[float], correction: Correction) -> Decisions:
    """The decisions about all candidates.

    Args:
        found: The scores.
        rates: The false positive rates.
        correction: How p-values are corrected; `auto` takes Holm's where a user has several candidates, whose p-values
            depend on each other in ways that Benjamini–Hochberg does not allow for.
    """
    candidates, controls = found.candidates, found.controls
    p = conformal_p(candidates.values, controls) if len(controls) else np.ones(len(candidates))
    clustered = len(set(candidates.users)) < len(candidates)
    chosen = ("holm" if clustered else "benjamini-hochberg") if correction == "auto" else correction
    flagged, refused = dict[float, NDArray[np.bool_]](), dict[float, NotEnoughData]()
    for rate in rates:
        try:
            flagged[rate] = flags(candidates, controls, rate)
        except NotEnoughData as refusal:
            refused[rate] = refusal
    corrected = holm(p) if chosen == "holm" else benjamini_hochberg(p)
    return Decisions(p=p, corrected=corrected, correction=chosen, flagged=flagged, refused=refused)


def flags(candidates: Scores, controls: Scores, rate: float) -> NDArray[np.bool_]:
    """Which candidates score higher than all but a share `rate` of the controls.

    Raises:
        NotEnoughData: There are too few controls for such a rate.
    """
    return np.asarray(conformal_p(candidates.values, controls, alpha=rate) <= rate)


def threshold(controls: Scores, rate: float) -> float:
    """The control's score that must be exceeded to be flagged at a rate.

    >>> threshold(Scores(("a", "b", "c"), ("a", "b", "c"), np.array([1.0, 2.0, 3.0])), 0.5)
    2.0
    """
    levels = np.unique(controls.values)
    low_enough = conformal_p(np.nextafter(levels, np.inf), controls) <= rate
    return float(levels[low_enough][0]) if low_enough.any() else float("inf")


def candidate_table(found: Standing, decided: Decisions, alpha: float) -> pa.Table:
    """One row per candidate: score, p-values, what is flagged, and the truth where it is known."""
    columns = {f"flagged_at_fpr_{rate:g}": flagged for rate, flagged in decided.flagged.items()}
    table = found.candidates.table(
        p_value=decided.p, p_corrected=decided.corrected, identified=decided.corrected <= alpha, **columns
    )
    if found.trained is None:
        return table
    return table.append_column(
        "trained", pa.array([found.trained.get(r) for r in found.candidates.records], pa.bool_())
    )


def threshold_table(found: Standing, decided: Decisions) -> pa.Table:
    """The threshold of each rate, from the controls."""
    rates = sorted(decided.flagged)
    return pa.table(
        {"fpr": pa.array(rates, pa.float64()), "threshold": pa.array([threshold(found.controls, r) for r in rates])}
    )
