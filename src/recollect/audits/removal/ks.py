"""KS: how far the target's outputs on the query set are from those of a model that was trained on it.

Liu & Tsaftaris 2020, "Have You Forgotten? A Method to Assess if Machine Learning Models Have Forgotten Data", as
equation 1 of Huang et al. 2021 gives it: at least 1 means forgotten (section 4.1 prints the contrary by mistake).
"""

from __future__ import annotations

import numpy as np
from scipy import special

from recollect.errors import NotEnoughData
from recollect.models.answers import Floats
from recollect.stats.comparisons import kolmogorov_smirnov


def ratio(target: Floats, calibration: Floats, query: Floats) -> float:
    """ρ_KS = KS(f_D(q), f_q(q)) / KS(f_cal(q), f_q(q)); at least 1 is forgotten.

    Distances are those of all class probabilities of all records, in one heap.

    Args:
        target: Logits of the target for the query set [records, classes].
        calibration: Those of a model trained on the calibration set.
        query: Those of a model trained on the query set.

    Raises:
        NotEnoughData: The calibration model answers just as the query model does, and nothing divides by that.
    """
    nearest = distance(calibration, query)
    if nearest == 0:
        raise NotEnoughData(
            "The calibration model answers the query set exactly as the model does that was trained on it.",
            do="Train both, and longer; or use the method `calibrated`.",
        )
    return distance(target, query) / nearest


def distance(one: Floats, other: Floats) -> float:
    """The Kolmogorov–Smirnov distance of two models' class probabilities."""
    return kolmogorov_smirnov(_probabilities(one), _probabilities(other)).effect.value


def _probabilities(logits: Floats) -> Floats:
    """All class probabilities, one after the other."""
    heap: Floats = special.softmax(logits.astype(np.float64), axis=1).ravel()
    return heap
