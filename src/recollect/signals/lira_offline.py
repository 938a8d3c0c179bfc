"""LiRA, offline: how unusual the target's confidence would be, had it not been trained on the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from recollect.models.access import Access
from recollect.models.model import Kind
from recollect.signals.aggregation import ANY_LOGPROB
from recollect.signals.evidence import SHADOW, TARGET, Evidence
from recollect.signals.lira import compute_logit, estimate_std
from recollect.signals.scores import Scores
from recollect.signals.shadow_scores import compute_in_out_means, score_with_shadows


@dataclass(frozen=True, kw_only=True)
class LiraOffline:
    """By how many deviations the target is surer of a record than shadow models that did not see it.

    Carlini et al. 2022, "Membership Inference Attacks From First Principles", the offline attack; its probability
    orders records as these deviations do.
    """

    per_record_variance: bool = False
    """Whether every record has a deviation of its own; as in the paper, that pays with 64 shadows or more."""
    even: bool = False
    """Whether as many shadows count for every record, none trained on it; audits do so where shadows are uneven."""

    name: ClassVar[str] = "lira-offline"
    paper: ClassVar[str] = "Carlini et al. 2022, Membership Inference Attacks From First Principles"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq", "classifier")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB, SHADOW: ANY_LOGPROB}

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The deviations of each record."""
        found = score_with_shadows(evidence, corpus, even=self.even)
        shadows = compute_logit(found.shadows)
        _, outside = compute_in_out_means(shadows, found.trained_on)
        own = self.per_record_variance and not self.even
        std = estimate_std(shadows, outside, ~found.trained_on, per_record=own)
        _, outside = found.compute_in_out_means(shadows)
        return found.select_scores((compute_logit(found.scores.values) - outside) / std)
