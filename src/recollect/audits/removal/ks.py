"""KS: how far the target's outputs on the query set are from those of a model that was trained on it.

Liu & Tsaftaris 2020, "Have You Forgotten? A Method to Assess if Machine Learning Models Have Forgotten Data", as
equation 1 of Huang et al. 2021 gives it: at least 1 means forgotten (section 4.1 prints the contrary by mistake).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy

from recollect.errors import NotEnoughData
from recollect.models.answers import Floats
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.stats.two_sample_tests import kolmogorov_smirnov

QUERY_MODEL: Final = "query"
"""The role of the model that is trained on the query set."""
CALIBRATION_MODEL: Final = "calibration"
"""The role of the model that is trained on the whole calibration set."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """ρ_KS of a query set, and how many records it is computed from."""

    rho: float
    size: int


def measure_ks_ratio(evidence: Evidence) -> Ratio:
    """ρ_KS of the query set, with a model trained on it and one trained on the calibration set.

    Raises:
        NotEnoughData: A model does not output all classes, or both outputs are identical.
    """
    target, calibration, query = (_read_logits(evidence, model) for model in (TARGET, CALIBRATION_MODEL, QUERY_MODEL))
    return Ratio(rho=compute_ks_rho(target, calibration, query), size=len(target))


def compute_ks_rho(target: Floats, calibration: Floats, query: Floats) -> float:
    """ρ_KS = KS(f_D(q), f_q(q)) / KS(f_cal(q), f_q(q)); at least 1 is forgotten.

    Distances are those of all class probabilities of all records, pooled.

    Args:
        target: Logits of the target for the query set [records, classes].
        calibration: Those of a model trained on the calibration set.
        query: Those of a model trained on the query set.

    Raises:
        NotEnoughData: The outputs of the calibration model and the query model are identical: the denominator is 0.
    """
    nearest = measure_ks_distance(calibration, query)
    if nearest == 0:
        raise NotEnoughData(
            "On the query set, the calibration model's outputs equal those of the model that was trained on it.",
            do="Train both, and longer; or use the method `calibrated`.",
            code="identical_models",
        )
    return measure_ks_distance(target, query) / nearest


def measure_ks_distance(one: Floats, other: Floats) -> float:
    """The Kolmogorov–Smirnov distance of two models' class probabilities."""
    return kolmogorov_smirnov(_pool_probabilities(one), _pool_probabilities(other)).effect.value


def _pool_probabilities(logits: Floats) -> Floats:
    """All class probabilities that KS compares, one after the other."""
    pooled: Floats = scipy.special.softmax(logits.astype(np.float64), axis=1).ravel()
    return pooled


def _read_logits(evidence: Evidence, model: str) -> Floats:
    """The logits of the query set that KS compares, in the order of its ids."""
    rows: dict[str, Floats] = {}
    for records, (answers,) in evidence.iter_blocks(AUDITED, [model]):
        if answers.logits is None:
            raise NotEnoughData(
                "The model does not show the probabilities of all classes.",
                do="Use `calibrated`.",
                code="no_class_probabilities",
            )
        rows |= {record.id: answers.logits[answers.get_rows(record.digest)][0] for record in records}
    return np.stack([rows[name] for name in sorted(rows)])
