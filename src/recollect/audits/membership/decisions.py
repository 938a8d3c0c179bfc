"""From scores to decisions: a p-value for every candidate against the controls, flags at each rate, the outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recollect.errors import NotEnoughData
from recollect.results.result import Outcome
from recollect.signals.scores import Floats, Scores
from recollect.stats.significance import benjamini_hochberg, conformal_p, holm

Correction = Literal["auto", "benjamini-hochberg", "holm"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """What is decided about every candidate, with or without ground truth."""

    p: Floats
    """The share of controls that score as high, in the order of the candidates."""
    corrected: Floats
    """The same after correction for the number of candidates."""
    correction: Literal["benjamini-hochberg", "holm"]
    identified: NDArray[np.bool_]
    """Whose corrected p-value is at most the significance level."""
    flagged: Mapping[float, NDArray[np.bool_]]
    """At each false positive rate that the controls support, who is flagged."""
    refused: Mapping[float, NotEnoughData]
    """The rates that they do not support."""


def decide(
    candidates: Scores, controls: Scores, *, rates: Sequence[float], correction: Correction, alpha: float
) -> Decisions:
    """The decisions about all candidates.

    Args:
        candidates: Their scores.
        controls: The scores of held-out records.
        rates: The false positive rates at which candidates are flagged.
        correction: How p-values are corrected; `auto` uses Holm's where a user has several candidates, whose p-values
            depend on each other in ways that Benjamini–Hochberg does not allow for.
        alpha: The significance level at which a candidate is identified.
    """
    p = conformal_p(candidates.values, controls) if len(controls) else np.ones(len(candidates))
    clustered = len(set(candidates.users)) < len(candidates)
    chosen = ("holm" if clustered else "benjamini-hochberg") if correction == "auto" else correction
    flagged, refused = dict[float, NDArray[np.bool_]](), dict[float, NotEnoughData]()
    for rate in rates:
        try:
            flagged[rate] = flag(candidates, controls, rate)
        except NotEnoughData as refusal:
            refused[rate] = refusal
    corrected = holm(p) if chosen == "holm" else benjamini_hochberg(p)
    return Decisions(
        p=p,
        corrected=corrected,
        correction=chosen,
        identified=corrected <= alpha,
        flagged=flagged,
        refused=refused,
    )


def flag(candidates: Scores, controls: Scores, rate: float) -> NDArray[np.bool_]:
    """Which candidates score higher than all but a share `rate` of the controls.

    Raises:
        NotEnoughData: There are too few controls for such a rate.
    """
    return np.asarray(conformal_p(candidates.values, controls, alpha=rate) <= rate)


def find_threshold(controls: Scores, rate: float) -> float:
    """The control's score that must be exceeded to be flagged at a rate.

    >>> find_threshold(Scores(("a", "b", "c"), ("a", "b", "c"), np.array([1.0, 2.0, 3.0])), 0.5)
    2.0
    """
    levels = np.unique(controls.values)
    low_enough = conformal_p(np.nextafter(levels, np.inf), controls) <= rate
    return float(levels[low_enough][0]) if low_enough.any() else float("inf")


def decide_outcome(
    decisions: Decisions | None, *, training_p: float | None, membership_p: float | None, complete: bool, alpha: float
) -> Outcome:
    """Whether the model reveals who is a member: one test where all is known, else several, corrected by Holm.

    Args:
        decisions: About every candidate; None without controls.
        training_p: The p-value of "as a group, candidates score like the controls"; None if they are too few.
        membership_p: The p-value of "members and non-members score alike"; None if they are too few.
        complete: Whether it is known of every candidate if it is a member. Controls then have nothing to add.
        alpha: The significance level.
    """
    tests = [] if membership_p is None else [membership_p]
    if not (complete and tests) and decisions is not None and (decisions.flagged or training_p is not None):
        tests.append(float(decisions.corrected.min(initial=1.0)))
        tests += [] if training_p is None else [training_p]
    if not tests:
        return "inconclusive"
    return "found" if float(holm(tests).min()) <= alpha else "not_found"
