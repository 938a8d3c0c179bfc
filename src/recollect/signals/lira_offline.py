"""LiRA, offline: how unusual the target's confidence would be, had it not seen the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from recollect.models.access import Access
from recollect.models.model import Kind
from recollect.signals.evidence import SHADOW, TARGET, Evidence
from recollect.signals.fleets import believed, side_means
from recollect.signals.lira import confidence, deviation
from recollect.signals.per_record import ANY_LOGPROB
from recollect.signals.scores import Scores


@dataclass(frozen=True, kw_only=True)
class LiraOffline:
    """By how many deviations the target is surer of a record than shadow models that did not see it.

    Carlini et al. 2022, "Membership Inference Attacks From First Principles", the offline attack; its probability
    orders records as these deviations do.
    """

    each: bool = False
    """Whether every record has a deviation of its own; as in the paper, that pays with 64 shadows or more."""

    name: ClassVar[str] = "lira-offline"
    paper: ClassVar[str] = "Carlini et al. 2022, Membership Inference Attacks From First Principles"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq", "classifier")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB, SHADOW: ANY_LOGPROB}

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """The deviations of each record."""
        found = believed(evidence, corpus)
        shadows = confidence(found.shadows)
        _, outside = side_means(shadows, found.seen)
        spread = deviation(shadows, outside, ~found.seen, each=self.each)
        return found.answer((confidence(found.scores.values) - outside) / spread)
