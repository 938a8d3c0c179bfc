"""Ensemble: several signals, weighted by how well they separate the members of shadow models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from recollect.errors import NotEnoughData
from recollect.models.access import Access
from recollect.models.model import Kind
from recollect.signals.aggregation import ANY_LOGPROB
from recollect.signals.evidence import SHADOW, TARGET, Evidence
from recollect.signals.loss import Loss
from recollect.signals.lowest_tokens import LowestTokens
from recollect.signals.scores import Floats, Scores
from recollect.signals.shadow_scores import BoolArray, ShadowScores, score_with_shadows
from recollect.signals.signal import Signal
from recollect.signals.zlib_ratio import Zlib

BASE_SIGNALS: tuple[Signal, ...] = (Loss(), Zlib(), LowestTokens())
"""Signals that need no more than one model's log-probabilities; those count that can read such models."""


@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """A logistic regression over several signals, each as it is and against shadows that did not see the record.

    Its weights are fitted to shadow models alone, whose members are known: the target's are never used.
    """

    even: bool = False
    """Whether as many shadows count for every record, none trained on it; audits do so where shadows are uneven."""

    name: ClassVar[str] = "ensemble"
    paper: ClassVar[str] = "ours; shadow training after Shokri et al. 2017, Membership Inference Attacks"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq", "classifier")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB, SHADOW: ANY_LOGPROB}

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The log-odds of membership."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        found = score_with_shadows(evidence, corpus, even=self.even)
        shadows = evidence.models_of_role(SHADOW)
        own = [_score_base_signals(evidence, model, found) for model in (TARGET, *shadows)]
        features = [build_features(own, found.trained_on, index) for index in range(len(own))]
        members = found.trained_on.T.ravel()
        if members.all() or not members.any():
            raise NotEnoughData(
                "The weights of 'ensemble' need members and non-members of shadow models; here one side is missing.",
                do="Give shadows that were trained on some of these records, or a recipe.",
                code="shadows_all_alike",
            )
        model: Any = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        model.fit(np.concatenate(features[1:]), members)
        if found.even is not None:
            features[0] = build_features(own, ~found.even, 0)
        return found.select_scores(np.asarray(model.decision_function(features[0])))


def _score_base_signals(evidence: Evidence, model: str, found: ShadowScores) -> Floats:
    """The scores of the ensemble's base signals under one model [records, signals]; 0 where there is none."""
    roles = dict.fromkeys(record.partition("\x1f")[0] for record in found.scores.records)
    alone = replace(
        evidence,
        models={TARGET: evidence.models[model]},
        answers={(TARGET, role): evidence.answers[model, role] for role in roles},
    )
    columns = []
    for signal in (each for each in BASE_SIGNALS if evidence.models[model].kind in each.kinds):
        values: dict[str, float] = {}
        for role in roles:
            scores = signal.score(alone, role)
            values |= {f"{role}\x1f{r}": float(v) for r, v in zip(scores.records, scores.values, strict=True)}
        columns.append([values.get(record, 0.0) for record in found.scores.records])
    return np.array(columns, dtype=np.float64).T


def build_features(own: Sequence[Floats], trained_on: BoolArray, index: int) -> Floats:
    """The features of each record for the ensemble: its signals, and how far they are above those of shadows.

    Only shadows count that did not see the record and are not the model itself; where there is none, all others.

    Args:
        own: The signals of the target, then of every shadow.
        trained_on: Which shadow was trained on which record.
        index: Of the model in `own`.
    """
    others = [i for i in range(1, len(own)) if i != index] or [1]
    values = np.stack([own[i] for i in others], axis=1)
    counted = ~trained_on[:, [i - 1 for i in others]]
    counted[~counted.any(axis=1)] = True
    baseline = (values * counted[..., None]).sum(axis=1) / counted.sum(axis=1)[:, None]
    return np.hstack([own[index], own[index] - baseline])
