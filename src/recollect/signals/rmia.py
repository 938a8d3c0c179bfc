"""RMIA: how many of the population a record outdoes, when each is measured against what shadow models make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recollect.checks import check_at_least, check_between
from recollect.errors import PlanError
from recollect.models.access import Access
from recollect.models.model import Kind
from recollect.signals.aggregation import ANY_LOGPROB
from recollect.signals.evidence import CONTROLS, SHADOW, TARGET, Evidence
from recollect.signals.scores import Floats, Scores
from recollect.signals.shadow_scores import ShadowScores, compute_in_out_means, score_with_shadows

DEFAULT_OFFLINE_A = 0.3
"""The paper's coefficients for images, where no record has shadows on both sides to fit them to."""


@dataclass(frozen=True, kw_only=True)
class Rmia:
    """The share of the population that a record outdoes, by its probability over what shadow models expect.

    Zarifzadeh, Liu & Shokri 2024, "Low-Cost High-Power Membership Inference Attacks". The probability is that of the
    label or, for texts, the geometric mean of the tokens' probabilities; what is expected is the mean of models that
    saw the record and models that did not. The population are the controls. By sorting: the pairs are never formed.
    """

    gamma: float | None = None
    """By what factor a record has to outdo one of the population. None for the paper's 2 for classifiers, and 1 for
    texts, whose probabilities are means over tokens and differ too little: at 2 most of them have equal scores."""
    offline: bool = False
    """Whether only shadows that did not see a record count; those that saw it are then guessed by `offline_a`."""
    offline_a: float | None = None
    """The paper's a: those that saw a record give it a · p + 1 − a where the others give it p. None to fit it."""
    even: bool = False
    """Whether as many shadows count for every record, none trained on it; audits do so where shadows are uneven."""

    name: ClassVar[str] = "rmia"
    paper: ClassVar[str] = "Zarifzadeh, Liu & Shokri 2024, Low-Cost High-Power Membership Inference Attacks"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq", "classifier")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB, SHADOW: ANY_LOGPROB}

    def __post_init__(self) -> None:
        check_at_least(1, gamma=1 if self.gamma is None else self.gamma)
        if self.offline_a is not None:
            check_between(0, 1, offline_a=self.offline_a)

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The share of the controls that each record outdoes."""
        if not evidence.has_answers(TARGET, CONTROLS):
            raise PlanError(
                "The signal 'rmia' compares with a population.", do="Give --controls CORPUS.", code="missing_controls"
            )
        found = score_with_shadows(evidence, corpus, even=self.even)
        ratios = np.exp(found.scores.values) / self._estimate_expected(found)
        population = np.array([record.startswith(f"{CONTROLS}\x1f") for record in found.scores.records])
        population &= ~found.trained_on.all(axis=1)
        default_gamma = 2.0 if evidence.models[TARGET].kind == "classifier" else 1.0
        gamma = default_gamma if self.gamma is None else self.gamma
        return found.select_scores(compute_dominated_share(ratios, ratios[population], gamma=gamma))

    def _estimate_expected(self, found: ShadowScores) -> Floats:
        """What shadow models expect of each record: the mean over having seen it and not."""
        shadows = np.exp(found.shadows)
        inside, outside = compute_in_out_means(shadows, found.trained_on)
        # all shadows saw it, such as a text that many wrote: a distance of logarithms leaves a probability above 0
        outside = np.where(
            found.trained_on.all(axis=1), np.exp(compute_in_out_means(found.shadows, found.trained_on)[1]), outside
        )
        a, alike = self._fit_offline_a(inside, outside, found), self.offline or found.even is not None
        if found.even is not None:
            _, outside = found.compute_in_out_means(shadows)
        predicted_in = 1 - a * (1 - outside)
        trained_on_any = np.zeros(len(inside), dtype=np.bool_) if alike else found.trained_on.any(axis=1)
        return np.asarray((np.where(trained_on_any, inside, predicted_in) + outside) / 2)

    def _fit_offline_a(self, inside: Floats, outside: Floats, found: ShadowScores) -> float:
        """How far having seen a record brings a model to certainty: least squares through (1, 1)."""
        if self.offline_a is not None or not found.has_both_sides.any():
            return DEFAULT_OFFLINE_A if self.offline_a is None else self.offline_a
        doubt, rest = 1 - outside[found.has_both_sides], 1 - inside[found.has_both_sides]
        return float(np.clip((doubt @ rest) / max(float(doubt @ doubt), 1e-12), 0, 1))


def compute_dominated_share(ratios: Floats, population: Floats, *, gamma: float) -> Floats:
    """RMIA's score: the share of a population whose ratio, gamma times, is at most each ratio.

    >>> compute_dominated_share(np.array([1.0, 5.0]), np.array([0.5, 2.0, 3.0, 9.0]), gamma=2.0).tolist()
    [0.25, 0.5]
    """
    return np.searchsorted(np.sort(population) * gamma, ratios, side="right") / max(1, len(population))
