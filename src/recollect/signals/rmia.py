"""RMIA: how many of the population a record outdoes, when each is measured against what shadow models make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recollect.errors import PlanError
from recollect.models.access import Access
from recollect.models.model import Kind
from recollect.settings import at_least, between
from recollect.signals.evidence import CONTROLS, SHADOW, TARGET, Evidence
from recollect.signals.fleets import Believed, believed, side_means
from recollect.signals.per_record import ANY_LOGPROB
from recollect.signals.scores import Floats, Scores

UNFITTED = 0.3
"""The paper's line for images, where no record has shadows on both sides to fit it to."""


@dataclass(frozen=True, kw_only=True)
class Rmia:
    """The share of the population that a record outdoes, by its probability over what shadow models expect.

    Zarifzadeh, Liu & Shokri 2024, "Low-Cost High-Power Membership Inference Attacks". The probability is that of the
    label or, for texts, the geometric mean of the symbols' probabilities; what is expected is the mean of models that
    saw the record and models that did not. The population are the controls. By sorting: the pairs are never formed.
    """

    gamma: float | None = None
    """By what factor a record has to outdo one of the population. None for the paper's 2 for classifiers, and 1 for
    texts, whose probabilities are means over symbols and differ too little: at 2 most of them score alike."""
    offline: bool = False
    """Whether only shadows that did not see a record count; those that saw it are then guessed by `line`."""
    line: float | None = None
    """The paper's a: those that saw a record give it a · p + 1 − a where the others give it p. None to fit it."""

    name: ClassVar[str] = "rmia"
    paper: ClassVar[str] = "Zarifzadeh, Liu & Shokri 2024, Low-Cost High-Power Membership Inference Attacks"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq", "classifier")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB, SHADOW: ANY_LOGPROB}

    def __post_init__(self) -> None:
        at_least(1, gamma=1 if self.gamma is None else self.gamma)
        if self.line is not None:
            between(0, 1, line=self.line)

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The share of the controls that each record outdoes."""
        if not evidence.has_asked(TARGET, CONTROLS):
            raise PlanError(
                "The signal 'rmia' compares with a population.", do="Give --controls CORPUS.", code="missing_controls"
            )
        found = believed(evidence, corpus)
        ratios = np.exp(found.scores.values) / self._expected(found)
        population = np.array([record.startswith(f"{CONTROLS}\x1f") for record in found.scores.records])
        usual = 2.0 if evidence.models[TARGET].kind == "classifier" else 1.0
        gamma = usual if self.gamma is None else self.gamma
        return found.answer(outdone(ratios, ratios[population], gamma=gamma))

    def _expected(self, found: Believed) -> Floats:
        """What shadow models expect of each record: the mean over having seen it and not."""
        shadows = np.exp(found.shadows)
        inside, outside = side_means(shadows, found.seen)
        # all shadows saw it, such as a text that many wrote: a distance of logarithms leaves a probability above 0
        outside = np.where(found.seen.all(axis=1), np.exp(side_means(found.shadows, found.seen)[1]), outside)
        guessed = 1 - self._line(inside, outside, found) * (1 - outside)
        saw = np.zeros(len(inside), dtype=np.bool_) if self.offline else found.seen.any(axis=1)
        return np.asarray((np.where(saw, inside, guessed) + outside) / 2)

    def _line(self, inside: Floats, outside: Floats, found: Believed) -> float:
        """How far having seen a record brings a model to certainty: least squares through (1, 1)."""
        if self.line is not None or not found.both.any():
            return UNFITTED if self.line is None else self.line
        doubt, rest = 1 - outside[found.both], 1 - inside[found.both]
        return float(np.clip((doubt @ rest) / max(float(doubt @ doubt), 1e-12), 0, 1))


def outdone(ratios: Floats, population: Floats, *, gamma: float) -> Floats:
    """The share of a population whose ratio, gamma times, is at most each ratio.

    >>> outdone(np.array([1.0, 5.0]), np.array([0.5, 2.0, 3.0, 9.0]), gamma=2.0).tolist()
    [0.25, 0.5]
    """
    return np.searchsorted(np.sort(population) * gamma, ratios, side="right") / max(1, len(population))
