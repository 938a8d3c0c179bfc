"""From scores to decisions: a set or a person is still in the model, gone, over-unlearned, or it is inconclusive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from recollect.audits.removal.calibrated import SetEvidence
from recollect.audits.removal.conformal import UserEvidence
from recollect.audits.removal.mixture import Mixture
from recollect.results.result import Outcome
from recollect.stats.significance import bonferroni, holm

Decision = Literal["still there", "gone", "over-unlearned", "inconclusive"]
"""The possible decisions about a set or a person."""
DECISIONS: Final[tuple[Decision, ...]] = get_args(Decision)
OUTCOMES: Final[Mapping[Decision, Outcome]] = {
    "still there": "found",
    "over-unlearned": "found",
    "gone": "not_found",
    "inconclusive": "inconclusive",
}
OVER_UNLEARNED_ALPHA: Final = 0.2
"""The share of α spent on the decision over-unlearned: it is a second possible error about a set that is gone."""


def decide_mixture(mixture: Mixture) -> Decision:
    """The decision from the mixture alone; either error has at most probability α."""
    if not mixture.identifiable:
        return "inconclusive"
    if mixture.p_still_there <= mixture.alpha:
        return "still there"
    return "gone" if mixture.excludes(mixture.tolerance) else "inconclusive"


def decide_set(evidence: SetEvidence) -> Decision:
    """The decision about the set."""
    if evidence.mixture is None:
        return _decide_without_mixture(evidence)
    if _is_still_there(evidence, evidence.mixture):
        return "still there"
    if not evidence.shifted and evidence.p_below <= OVER_UNLEARNED_ALPHA * evidence.level:
        return "over-unlearned"
    if evidence.target_damaged or (evidence.neighbours is None and evidence.p_above <= evidence.level):
        return "inconclusive"
    looks_gone = decide_mixture(evidence.mixture) == "gone" and not is_weakly_memorised(evidence)
    return "gone" if _is_cleared(evidence) or looks_gone else "inconclusive"


def is_weakly_memorised(evidence: SetEvidence) -> bool:
    """Whether the set looks gone, but not at the lower threshold, where a weakly memorising target shows members."""
    lower, looks_gone = evidence.lower, evidence.mixture is not None and decide_mixture(evidence.mixture) == "gone"
    return looks_gone and lower is not None and lower.identifiable and lower.likeliest_share >= lower.tolerance


def explain_inconclusive(evidence: SetEvidence) -> str:
    """The code of why the decision about the set is inconclusive."""
    if evidence.target_damaged:
        return "target_damaged"
    unlike_any = evidence.neighbours is not None and bool(evidence.neighbours.far.all())
    if unlike_any or (evidence.neighbours is None and evidence.shifted):
        return "not_comparable"
    if evidence.mixture is None:
        return "no_calibration_models"
    return "weakly_memorised" if is_weakly_memorised(evidence) else "no_power"


def fits_no_share(mixture: Mixture, confidence: float) -> bool:
    """Whether a share still in can be estimated, and none explains the scores."""
    return mixture.identifiable and not mixture.list_compatible_shares(confidence)


def decide_users(evidence: UserEvidence) -> NDArray[np.str_]:
    """The decision about each person; any of them is wrong with probability α at most."""
    p_values, level = evidence.p_values, evidence.level
    corrected = {name: holm(p) for name, p in p_values.items()}
    decisions = np.full(len(p_values["p_gone"]), "inconclusive", dtype="<U16")
    decisions[(corrected["p_gone"] <= level) & (p_values["p_still_there"] > level)] = "gone"
    if not evidence.shifted:
        decisions[corrected["p_below"] <= OVER_UNLEARNED_ALPHA * level] = "over-unlearned"
        decisions[corrected["p_still_there"] <= level] = "still there"
    if evidence.scores.is_target_damaged():
        decisions[decisions == "gone"] = "inconclusive"
    return decisions


def decide_outcome(decisions: NDArray[np.str_]) -> Outcome:
    """Whether any person is still there, or all are gone."""
    if np.isin(decisions, ["still there", "over-unlearned"]).any():
        return "found"
    return "not_found" if (decisions == "gone").all() else "inconclusive"


def decide_ema(rho: float, level: float) -> Outcome:
    """What EMA, as published, calls a set: removed if ρ is at most the level."""
    return "not_found" if rho <= level else "found"


def decide_ks(rho: float) -> Outcome:
    """What KS, as published, calls a set: forgotten if ρ is at least 1."""
    return "not_found" if rho >= 1 else "found"


def _is_still_there(evidence: SetEvidence, mixture: Mixture) -> bool:
    """Whether confidence in the set is too high; without neighbours ranks are a second test, which is corrected for."""
    if evidence.neighbours is not None:
        return decide_mixture(mixture) == "still there"
    tests = [evidence.p_above, *([mixture.p_still_there] if mixture.identifiable else [])]
    return not evidence.shifted and float(bonferroni(tests).min()) <= evidence.level


def _is_cleared(evidence: SetEvidence) -> bool:
    """Whether a share from the tolerance on is ruled out, whatever the set is like."""
    worst = evidence.worst_case
    return worst is not None and worst.excludes(worst.tolerance)


def _decide_without_mixture(evidence: SetEvidence) -> Decision:
    """The decision if nothing shows how members like these are scored."""
    if not evidence.shifted and evidence.p_above <= evidence.level:
        return "still there"
    if not evidence.shifted and evidence.p_below <= OVER_UNLEARNED_ALPHA * evidence.level:
        return "over-unlearned"
    return "gone" if _is_cleared(evidence) else "inconclusive"
