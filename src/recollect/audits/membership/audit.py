"""The membership audit: was this record, or this person's set of records, in the training data?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.desk import BARE_DESK, Desk
from recollect.audits.membership.bounds import CANARIES, CANARY_TEXTS, Claim, canary_corpus
from recollect.audits.membership.deciding import Correction
from recollect.audits.membership.exposed import embedder_of
from recollect.audits.membership.fleet import POOL, POPULATION, REFERENCE_HALF, reference_cohorts, shadow_cohorts
from recollect.audits.membership.judging import judged
from recollect.audits.membership.standing import By, target_cohort
from recollect.audits.membership.view import PRESENTATION, VERB
from recollect.audits.verb import Verb
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.errors import PlanError
from recollect.models.model import Model
from recollect.results.presentation import Presentation
from recollect.results.result import Result
from recollect.settings import at_least, between, one_of
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, SHADOW, TARGET, Evidence
from recollect.signals.registry import SIGNALS, signal_named
from recollect.signals.signal import Signal, derived_corpora


@dataclass(frozen=True, kw_only=True)
class MembershipAudit:
    """Which candidates were in the training data, by a threshold that records known not to be in it set."""

    signal: str | None = None
    """The name of a signal; None for `ratio` where a reference is given, and `loss` otherwise."""
    signal_settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the signal, such as {"fraction": 0.1} of `lowest-tokens`."""
    fpr: tuple[float, ...] = (0.01, 0.1)
    """The false positive rates at which every candidate is decided about."""
    by: By = "record"
    """Whether records are judged, or users by the mean of their records."""
    correction: Correction = "auto"
    """How p-values are corrected for many candidates: `benjamini-hochberg`, `holm`, or `auto`."""
    shadows: int = 8
    """How many shadow models are trained for signals that need them and get none."""
    alpha: float = 0.05
    """How often a model that saw none of the candidates may be called one that did."""
    confidence: float = 0.95
    """How often intervals are right."""
    claimed_epsilon: float | None = None
    """The ε that the model's card promises, to be set beside the bounds found here."""
    claimed_unit: Literal["record", "user"] = "record"
    """Whose influence that ε bounds."""
    delta: float = 0.0
    """The δ of that promise."""

    name: ClassVar[str] = "membership"
    question: ClassVar[str] = "Was this record, or this person's set of records, in the training data?"
    paper: ClassVar[str] = "Mireshghallah et al. 2022, Quantifying Privacy Risks of Masked Language Models"
    verb: ClassVar[Verb] = VERB
    presentation: ClassVar[Presentation] = PRESENTATION

    def __post_init__(self) -> None:
        one_of(("record", "user"), by=self.by, claimed_unit=self.claimed_unit)
        one_of(("auto", "benjamini-hochberg", "holm"), correction=self.correction)
        between(0, 1, alpha=self.alpha, confidence=self.confidence, **{f"fpr {rate}": rate for rate in self.fpr})
        at_least(2, shadows=self.shadows)
        at_least(0, delta=self.delta, claimed_epsilon=self.claimed_epsilon or 0)
        if not self.fpr:
            raise PlanError("No false positive rate is given.", do="Give at least one, such as 0.1.")
        if self.signal is not None:
            signal_named(self.signal, **self.signal_settings)
        elif self.signal_settings:
            raise PlanError("Settings of a signal are given, but no signal.", do="Name the signal.")

    def needs(self, evidence: Evidence) -> Needs:
        """Candidates and controls, asked of every model that the signal compares."""
        signal, given = self._signal(evidence), frozenset({TARGET, AUDITED, CONTROLS})
        trained = [part for part in (REFERENCE, SHADOW) if part in signal.needs and self.signal is not None]
        fleet = {part: self.shadows if part == SHADOW else 1 for part in trained}
        if not given <= evidence.parts:
            return Needs(access=signal.needs, given=given, fleet=fleet)
        _refuse(signal, evidence)
        corpora, train, models = self._trained(signal, evidence)
        if CANARIES in evidence.files:
            corpora[CANARY_TEXTS] = canary_corpus(Canaries.load(evidence.files[CANARIES]), evidence.models[TARGET].kind)
        controls = POPULATION if POPULATION in corpora else CONTROLS
        parts = [AUDITED, controls, *([CANARY_TEXTS] if CANARY_TEXTS in corpora else [])]
        derived = derived_corpora(signal, evidence, [part for part in parts if part in evidence.corpora])
        return Needs(
            access=signal.needs,
            given=given,
            fleet=fleet,
            corpora={**corpora, **derived},
            train=train,
            ask=frozenset({(model, part) for model in models for part in parts} | {(TARGET, part) for part in derived}),
        )

    def run(self, evidence: Evidence, rng: np.random.Generator, desk: Desk = BARE_DESK) -> Result:
        """Who was in training, and how well that can be told where the truth is known."""
        return judged(self, self._signal(evidence), evidence)

    @property
    def claim(self) -> Claim:
        """What the model promises."""
        return Claim(epsilon=self.claimed_epsilon, delta=self.delta, unit=self.claimed_unit)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, as a result writes them down."""
        return {**asdict(self), "fpr": list(self.fpr), "signal_settings": dict(self.signal_settings)}

    def _signal(self, evidence: Evidence) -> Signal:
        """The signal; as long as no model is known, the one that needs more."""
        compares = not evidence.models or evidence.playing(REFERENCE)
        return signal_named(self.signal or ("ratio" if compares else "loss"), **self.signal_settings)

    def _trained(
        self, signal: Signal, evidence: Evidence
    ) -> tuple[dict[str, Corpus], dict[str, Cohorts], tuple[str, ...]]:
        """The corpora and cohorts of models that have to be trained, and all models that are asked."""
        corpora, train = dict[str, Corpus](), dict[str, Cohorts]()
        asked = {TARGET: None}
        for part in (REFERENCE, SHADOW):
            asked |= dict.fromkeys(evidence.playing(part) if part in signal.needs else ())
        if REFERENCE in signal.needs and (not evidence.playing(REFERENCE) or POPULATION in evidence.corpora):
            halves, train[REFERENCE_HALF] = reference_cohorts(evidence)
            corpora |= halves
        if SHADOW in signal.needs and (not evidence.playing(SHADOW) or POOL in evidence.corpora):
            corpora[POOL], train[POOL] = shadow_cohorts(evidence, self.shadows)
        asked |= {name: None for cohorts in train.values() for name in cohorts.models}
        return corpora, train, tuple(asked)


def _refuse(signal: Signal, evidence: Evidence) -> None:
    """Refuse models that the signal cannot read or compare, before they cost anything."""
    target = evidence.models[TARGET]
    if target.kind not in signal.kinds:
        fitting = [name for name in SIGNALS.names if target.kind in SIGNALS.load(name).kinds]
        raise PlanError(
            f"The signal {signal.name!r} cannot read a {target.kind} model.", do=f"Choose one of {', '.join(fitting)}."
        )
    embedder_of(evidence)
    for part in signal.needs:
        for name in evidence.playing(part):
            _refuse_unlike(target, evidence.models[name], name)
    if AUDITED in evidence.cohorts:
        target_cohort(evidence.cohorts[AUDITED])


def _refuse_unlike(target: Model, other: Model, name: str) -> None:
    """Refuse to compare answers to different questions."""
    if other.kind != target.kind:
        raise PlanError(
            f"The {name} is a {other.kind} model and the target a {target.kind} one: their answers do not compare.",
            do=f"Give a {target.kind} model.",
        )
    if target.kind == "masked" and other.question != target.question:
        raise PlanError(
            f"The {name} is asked with other mask patterns than the target.", do="Ask both the same question."
        )
