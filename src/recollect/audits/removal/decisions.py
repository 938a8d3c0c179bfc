"""From scores to decisions: a set or a person is still in the model, gone, over-unlearned, or it is inconclusive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from recollect.audits.common.outcomes import EXPLAINED_BY_TEXTS, NO_POWER, NOT_COMPARABLE, PLACEBO_FAILED
from recollect.audits.removal.calibrated import SetEvidence, UserEvidence
from recollect.results.result import Outcome
from recollect.stats.significance import holm

Decision = Literal["still there", "gone", "over-unlearned", "inconclusive"]
"""The possible decisions about a set or a person."""
DECISIONS: Final[tuple[Decision, ...]] = get_args(Decision)
DIFFICULTY_DIFFERS: Final = "difficulty_differs"
"""The code where the audited records are easier or harder than controls like them."""
OUTCOMES: Final[Mapping[Decision, Outcome]] = {
    "still there": "found",
    "over-unlearned": "found",
    "gone": "not_found",
    "inconclusive": "inconclusive",
}
WITHHELD: Final = (
    "fraction_still_in",
    "p_still_there",
    "p_over_unlearned",
    "p_gone",
    "p_all_in",
    "auc_against_controls",
)
"""Findings that mean nothing if the set and the controls are not comparable."""


def decide_set(evidence: SetEvidence) -> Decision:
    """The decision about a set: still there, gone, over-unlearned or inconclusive.

    A set that is gone is accused with probability α at most, in either way; and a set of which the tolerance or more is
    in is called gone with probability α at most. Which of the two comparisons counts for "gone" depends on the content
    of the records alone: with controls like them, or, if most are unlike any or harder, with members only.
    """
    if not evidence.comparable:
        cleared = evidence.unlike is not None and evidence.unlike.excludes_share(
            evidence.unlike.tolerance, evidence.level
        )
        return "gone" if cleared else "inconclusive"
    if evidence.placebo.status == "failed":
        return "inconclusive"
    if evidence.p_still_there <= evidence.level:
        return "inconclusive" if evidence.explained else "still there"
    if evidence.p_over_unlearned <= evidence.level:
        return "over-unlearned"
    mixture = evidence.gone_mixture
    if evidence.target_damaged or mixture is None or not mixture.identifiable:
        return "inconclusive"
    return "gone" if mixture.excludes_share(mixture.tolerance, evidence.level) else "inconclusive"


def find_inconclusive_code(evidence: SetEvidence) -> str:
    """The code of why no decision about the set is possible."""
    reasons = (
        (not evidence.comparable, NOT_COMPARABLE),
        (evidence.placebo.status == "failed", PLACEBO_FAILED),
        (evidence.explained and evidence.p_still_there <= evidence.level, EXPLAINED_BY_TEXTS),
        (evidence.target_damaged, "target_damaged"),
        (evidence.difficulty is not None and evidence.difficulty.differs, DIFFICULTY_DIFFERS),
        (evidence.mixture is None, "no_calibration_models"),
    )
    return next((code for applies, code in reasons if applies), NO_POWER)


def decide_users(evidence: UserEvidence) -> NDArray[np.str_]:
    """The decision about each person: still there, gone or inconclusive; any is wrong with probability α at most."""
    p_values, level = evidence.p_values, evidence.level
    corrected = {name: holm(p) for name, p in p_values.items()}
    decisions = np.full(len(p_values["p_gone"]), "inconclusive", dtype="<U16")
    decisions[(corrected["p_gone"] <= level) & (p_values["p_still_there"] > level)] = "gone"
    decisions[corrected["p_over_unlearned"] <= level] = "over-unlearned"
    decisions[corrected["p_still_there"] <= level] = "still there"
    decisions[evidence.atypical] = "inconclusive"
    if not evidence.comparable:
        decisions[:] = "inconclusive"
    if evidence.scores.is_target_damaged():
        decisions[decisions == "gone"] = "inconclusive"
    return decisions


def find_undecided_code(evidence: UserEvidence) -> str:
    """The code of the decision that nobody is still there, and not everybody is gone."""
    if not evidence.comparable:
        return NOT_COMPARABLE
    return "target_damaged" if evidence.scores.is_target_damaged() else NO_POWER


def decide_users_outcome(decisions: NDArray[np.str_]) -> Outcome:
    """The outcome of decisions about people: whether anyone is still there, or all are gone."""
    if np.isin(decisions, ["still there", "over-unlearned"]).any():
        return "found"
    return "not_found" if (decisions == "gone").all() else "inconclusive"


def decide_ema(rho: float, level: float) -> Outcome:
    """What EMA, as published, calls a set: removed if ρ is at most the level."""
    return "not_found" if rho <= level else "found"


def decide_ks(rho: float) -> Outcome:
    """What KS, as published, calls a set: forgotten if ρ is at least 1."""
    return "not_found" if rho >= 1 else "found"
