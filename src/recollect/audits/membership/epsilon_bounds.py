"""Lower bounds on epsilon: how much privacy the model has certainly lost, beside what its card claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.membership.candidate_scores import By, UnitScores
from recollect.audits.membership.decisions import flag_at_rate
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.corpus import Corpus
from recollect.corpora.messages import ASSISTANT, say
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData
from recollect.models.model import Kind
from recollect.signals.scores import Scores
from recollect.stats.epsilon import epsilon_from_one_run, epsilon_from_rates
from recollect.stats.requirements import required_controls
from recollect.stats.significance import binomial_p

if TYPE_CHECKING:
    from recollect.stats.intervals import Estimate

CANARY_TEXTS = "canary-texts"
"""The role of the canaries as a corpus."""
BOUND_RATES = (0.01, 0.05, 0.2, 0.5)
"""The false positive rates whose thresholds, set by the controls alone, the bound from counts combines."""
UNFAIR = 0.001
"""Below this p-value of the number of members, membership was not decided by fair coin flips."""

_COUNTS = (
    "A lower bound on epsilon, at this confidence level, from true and false positives. It assumes that every "
    "candidate has a training run of its own; within one training run it is approximate."
)
_NO_CONTROLS = "The threshold of this bound comes from controls, and none are given."
_ONE_RUN = (
    "A lower bound on epsilon, at this confidence level, from correct guesses about one training run. It holds if a "
    "fair coin decided for each candidate whether it was trained on."
)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The privacy claim of a model's card."""

    epsilon: float | None
    delta: float
    unit: By

    def compare(self, bound: float, *, by: By) -> str:
        """The claim and the bound in one sentence, or nothing where there is no claim to compare with.

        >>> Claim(epsilon=4.0, delta=1e-5, unit="record").compare(0.7, by="record")
        ' The model claims ε ≤ 4 (δ = 1e-05) per record; this audit shows at least 0.70.'
        """
        if self.epsilon is None:
            return ""
        if self.unit == "record" and by == "user":
            return " The model's claim is per record, and is weaker for users with several."
        claimed = f" The model claims ε ≤ {self.epsilon:g} (δ = {self.delta:g}) per {self.unit};"
        if bound > self.epsilon:
            return f"{claimed} this audit shows at least {bound:.2f}, which refutes it."
        return f"{claimed} this audit shows at least {bound:.2f}."


def add_epsilon_bounds(builder: ResultBuilder, scores: UnitScores, claim: Claim, *, by: By, confidence: float) -> None:
    """Both lower bounds on epsilon from candidates with known ground truth; every user counts once.

    Args:
        builder: Where findings are kept.
        scores: The scores and the ground truth.
        claim: What the model promises.
        by: Whether the units are records or users; records of one user count as that user.
        confidence: The confidence level of the bounds.
    """
    clustered = len(set(scores.candidates.users)) < len(scores.candidates)
    units = scores.average_by_user() if clustered else scores
    by = "user" if clustered else by
    if units.controls is None:
        builder.skip("epsilon_from_counts", code="missing_controls", reason=_NO_CONTROLS)
    else:
        counts = _FlagCounts(units.members, units.non_members, units.controls, claim.delta, confidence)
        _add_epsilon_bound(builder, "epsilon_from_counts", counts, _COUNTS, claim, by)
    run = _OneRun(units.members, units.non_members, claim.delta, confidence)
    _add_epsilon_bound(builder, "epsilon_from_one_run", run, _ONE_RUN, claim, by)


def add_canary_epsilon_bound(
    builder: ResultBuilder, canaries: Canaries, scores: Scores, claim: Claim, confidence: float
) -> None:
    """The lower bound on epsilon from canaries that were planted once, against those that were held back."""
    once = [canary.id for canary in canaries.canaries if canary.planted == 1 and canary.id in scores]
    never = [canary.id for canary in canaries.controls if canary.id in scores]
    run = _OneRun(scores.select(once), scores.select(never), claim.delta, confidence)
    _add_epsilon_bound(builder, "epsilon_from_canaries", run, _ONE_RUN, claim, "record")


def build_canary_corpus(canaries: Canaries, kind: Kind) -> Corpus:
    """Canaries, planted once or held back, as records from which epsilon is bounded."""
    scored = [canary for canary in canaries.canaries if canary.planted <= 1]
    if kind == "seq2seq":
        records = [Record(id=c.id, source=c.text if c.source is None else c.source, target=c.text) for c in scored]
    else:
        records = [
            Record(id=c.id, text=c.text)
            if c.user_turn is None
            else Record(id=c.id, messages=(say("user", c.user_turn), say(ASSISTANT, c.text)))
            for c in scored
        ]
    return Corpus.of(records, name="the canaries")


@dataclass(frozen=True)
class _FlagCounts:
    """The bound from flags."""

    members: Scores
    others: Scores
    controls: Scores
    delta: float
    confidence: float

    def __call__(self) -> Estimate:
        if not len(self.members) or not len(self.others):
            raise NotEnoughData(
                "A bound needs known members and known non-members.",
                do="Give both.",
                code="too_few_non_members" if len(self.members) else "too_few_members",
            )
        sides = (self.members, self.others)
        supported = [rate for rate in BOUND_RATES if len(set(self.controls.users)) >= required_controls(rate)]
        raised = [
            [int(np.count_nonzero(flag_at_rate(side, self.controls, rate))) for side in sides] for rate in supported
        ]
        return epsilon_from_rates(
            [(true, false) for true, false in raised],
            members=len(self.members),
            non_members=len(self.others),
            delta=self.delta,
            confidence=self.confidence,
        )


@dataclass(frozen=True)
class _OneRun:
    """The bound from guesses about one training run."""

    members: Scores
    others: Scores
    delta: float
    confidence: float

    def __call__(self) -> Estimate:
        inside, both = len(self.members), len(self.members) + len(self.others)
        if both and binomial_p(inside, both, 0.5, alternative="two-sided") < UNFAIR:
            raise NotEnoughData(
                f"{inside} of {both} are members: membership was not decided by fair coin flips.",
                do="Flip a coin for each candidate before training, or plant as many canaries as are held back.",
                code="not_randomised",
            )
        return epsilon_from_one_run(
            self.members.values, self.others.values, delta=self.delta, confidence=self.confidence
        )


def _add_epsilon_bound(
    builder: ResultBuilder, name: str, estimate: _FlagCounts | _OneRun, reading: str, claim: Claim, by: By
) -> None:
    """The finding of a lower bound on epsilon, with the model's claim beside it."""
    try:
        bound = estimate()
    except NotEnoughData as refusal:
        builder.refuse(name, refusal)
        return
    beside = f"{reading} 0 means that no leakage was shown.{claim.compare(bound.value, by=by)}"
    builder.try_estimate(name, lambda: bound, unit="nats", reading=beside)
