"""Epsilon from below: how much privacy the model has certainly lost, beside what its card claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from recollect.audits.common.builder import ResultBuilder
from recollect.audits.membership.deciding import flags
from recollect.audits.membership.standing import Standing
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData
from recollect.models.model import Kind
from recollect.results.result import Finding
from recollect.signals.scores import Scores
from recollect.stats.epsilon import epsilon_from_counts, epsilon_from_one_run
from recollect.stats.significance import binomial_p

if TYPE_CHECKING:
    from recollect.stats.intervals import Estimate

CANARIES = "canaries"
"""The part of the manifest that `recollect plant` writes."""
CANARY_TEXTS = "canary-texts"
"""The part of the canaries as a corpus."""
UNFAIR = 0.001
"""Below this p-value so many of one side are no tosses of a fair coin."""

_COUNTS = (
    "The least epsilon, at this confidence, that lets so many be found for so few false alarms. It counts as if every "
    "candidate came from a training of its own; within one training it may be a little off."
)
_ONE_RUN = (
    "The least epsilon that so many right guesses about one training run allow. It holds if a fair coin decided for "
    "each whether it was trained on."
)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What the card of a model promises."""

    epsilon: float | None
    delta: float
    unit: Literal["record", "user"]

    def beside(self, bound: float, *, by: Literal["record", "user"]) -> str:
        """The claim and the bound in one sentence, or nothing where there is no claim to compare with.

        >>> Claim(epsilon=4.0, delta=1e-5, unit="record").beside(0.7, by="record")
        ' The model claims ε ≤ 4 (δ = 1e-05) per record; this audit shows at least 0.70.'
        """
        if self.epsilon is None:
            return ""
        if self.unit == "record" and by == "user":
            return " The model's claim is for single records, and says less about users with several."
        said = f" The model claims ε ≤ {self.epsilon:g} (δ = {self.delta:g}) per {self.unit};"
        if bound > self.epsilon:
            return f"{said} this audit shows at least {bound:.2f}, which refutes it."
        return f"{said} this audit shows at least {bound:.2f}."


def add_bounds(
    builder: ResultBuilder, found: Standing, claim: Claim, *, rate: float, confidence: float
) -> list[Finding]:
    """Both bounds from candidates of whom the truth is known; every user counts once.

    Args:
        builder: Where findings are kept.
        found: The scores.
        claim: What the model promises.
        rate: The false positive rate at which candidates are flagged: the threshold comes from the controls alone.
        confidence: How often the bounds are right.
    """
    clustered = len(set(found.candidates.users)) < len(found.candidates)
    judged = found.by_user() if clustered else found
    by: Literal["record", "user"] = "user" if clustered else "record"
    sides = judged.members, judged.others
    tried = [
        _bound(builder, "epsilon_from_counts", _Counts(judged, rate, claim.delta, confidence), _COUNTS, claim, by),
        _bound(builder, "epsilon_from_one_run", _OneRun(*sides, claim.delta, confidence), _ONE_RUN, claim, by),
    ]
    return [each for each in tried if each is not None]


def add_canary_bound(
    builder: ResultBuilder, canaries: Canaries, scores: Scores, claim: Claim, confidence: float
) -> Finding | None:
    """The bound from canaries that were planted once, against those that were held back."""
    once = [canary.id for canary in canaries.canaries if canary.planted == 1 and canary.id in scores]
    never = [canary.id for canary in canaries.controls if canary.id in scores]
    run = _OneRun(scores.select(once), scores.select(never), claim.delta, confidence)
    return _bound(builder, "epsilon_from_canaries", run, _ONE_RUN, claim, "record")


def canary_corpus(canaries: Canaries, kind: Kind) -> Corpus:
    """Canaries, planted once or held back, as records that such a model reads."""
    asked = [canary for canary in canaries.canaries if canary.planted <= 1]
    if kind == "seq2seq":
        records = [Record(id=c.id, source=c.text if c.source is None else c.source, target=c.text) for c in asked]
    else:
        records = [Record(id=c.id, text=c.text) for c in asked]
    return Corpus.of(records, name="the canaries")


@dataclass(frozen=True)
class _Counts:
    """The bound from flags."""

    found: Standing
    rate: float
    delta: float
    confidence: float

    def __call__(self) -> Estimate:
        members, others = self.found.members, self.found.others
        if not len(members) or not len(others):
            raise NotEnoughData("A bound needs candidates of both kinds.", do="Give both.")
        raised = [int(np.count_nonzero(flags(side, self.found.controls, self.rate))) for side in (members, others)]
        return epsilon_from_counts(
            found=raised[0],
            members=len(members),
            alarms=raised[1],
            others=len(others),
            delta=self.delta,
            confidence=self.confidence,
        )


@dataclass(frozen=True)
class _OneRun:
    """The bound from guesses about one training."""

    members: Scores
    others: Scores
    delta: float
    confidence: float

    def __call__(self) -> Estimate:
        inside, both = len(self.members), len(self.members) + len(self.others)
        if both and binomial_p(inside, both, 0.5, alternative="two-sided") < UNFAIR:
            raise NotEnoughData(
                f"{inside} of {both} were trained on, which no fair coin decided.",
                do="Toss a coin for each candidate before training, or plant as many canaries as are held back.",
            )
        return epsilon_from_one_run(
            self.members.values, self.others.values, delta=self.delta, confidence=self.confidence
        )


def _bound(
    builder: ResultBuilder,
    name: str,
    make: _Counts | _OneRun,
    reading: str,
    claim: Claim,
    by: Literal["record", "user"],
) -> Finding | None:
    """A bound with the claim beside it."""
    try:
        estimate = make()
    except NotEnoughData as refusal:
        builder.refuse(name, refusal)
        return None
    said = f"{reading} 0 means that nothing was shown.{claim.beside(estimate.value, by=by)}"
    return builder.try_estimate(name, lambda: estimate, unit="nats", reading=said)
