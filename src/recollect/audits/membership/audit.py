"""The membership audit: was this record, or this person's set of records, in the training data?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.common.ground_truth import find_members, has_both
from recollect.audits.common.reference_check import refuse_target_as_reference
from recollect.audits.membership.candidate_scores import By
from recollect.audits.membership.decisions import Correction
from recollect.audits.membership.epsilon_bounds import CANARY_TEXTS, Claim, build_canary_corpus
from recollect.audits.membership.result import build_result
from recollect.audits.membership.shadow_models import (
    POOL,
    POPULATION,
    REFERENCE_HALF,
    build_reference_cohorts,
    build_shadow_cohorts,
)
from recollect.audits.membership.susceptibility import find_embedder
from recollect.audits.membership.view import PRESENTATION, QUESTION, VERB
from recollect.audits.verb import Verb
from recollect.audits.workspace import NO_WORKSPACE, Workspace
from recollect.checks import check_at_least, check_between, check_one_of
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.times import Period
from recollect.errors import PlanError
from recollect.models.model import Model
from recollect.results.presentation import Presentation
from recollect.results.result import Result
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, SHADOW, TARGET, Evidence
from recollect.signals.registry import SIGNALS, make_signal
from recollect.signals.roles import CANARIES
from recollect.signals.shadow_scores import refuse_unknown_training_sets
from recollect.signals.signal import Signal, derive_corpora


@dataclass(frozen=True, kw_only=True)
class MembershipAudit:
    """Which candidates are in the training set, by the null distribution of held-out controls.

    Where members and non-members are known among the candidates, it also measures how well the two are distinguished,
    and needs no controls for that.
    """

    signal: str | None = None
    """The signal that scores records (`recollect list`); `ratio` by default if a reference is given, else `loss`."""
    signal_settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the signal, such as fraction=0.1 for `lowest-tokens`."""
    fpr: tuple[float, ...] = (0.01, 0.1)
    """The false positive rates at which candidates are flagged."""
    by: By = "record"
    """What is audited: single records, or users by the mean score of their records."""
    correction: Correction = "auto"
    """Correction of p-values for many candidates. `holm`: at most alpha is the probability that anybody is identified
    falsely; use it where one wrong name does harm. `benjamini-hochberg`: at most a share alpha of those identified is
    expected to be false; finds more, and holds where each user has one candidate. `auto`: `holm` where a user has
    several candidates, else `benjamini-hochberg`."""
    shadows: int = 8
    """Number of shadow models to train, if the signal needs them and none are given."""
    alpha: float = 0.05
    """The significance level: how often a model trained on none of the candidates is found to be trained on some."""
    confidence: float = 0.95
    """The confidence level of all intervals."""
    claimed_epsilon: float | None = None
    """The ε that is claimed for the model, to be compared with the lower bounds measured here."""
    claimed_unit: Literal["record", "user"] = "record"
    """The privacy unit of that ε: record-level or user-level."""
    delta: float = 0.0
    """The δ of that claim."""
    period: Period = "month"
    """Calendar period within which records are compared, if both corpora have times: week, month or quarter."""

    name: ClassVar[str] = "membership"
    question: ClassVar[str] = QUESTION
    paper: ClassVar[str] = "Mireshghallah et al. 2022, Quantifying Privacy Risks of Masked Language Models"
    verb: ClassVar[Verb] = VERB
    presentation: ClassVar[Presentation] = PRESENTATION

    def __post_init__(self) -> None:
        check_one_of(("record", "user"), by=self.by, claimed_unit=self.claimed_unit)
        check_one_of(get_args(Period), period=self.period)
        check_one_of(("auto", "benjamini-hochberg", "holm"), correction=self.correction)
        check_between(0, 1, alpha=self.alpha, confidence=self.confidence, **{f"fpr {rate}": rate for rate in self.fpr})
        check_at_least(2, shadows=self.shadows)
        check_at_least(0, delta=self.delta, claimed_epsilon=self.claimed_epsilon or 0)
        if not self.fpr:
            raise PlanError("No false positive rate is given.", do="Give at least one, such as 0.1.", code="no_fpr")
        if self.signal is not None:
            make_signal(self.signal, **self.signal_settings)
        elif self.signal_settings:
            raise PlanError(
                "Settings of a signal are given, but no signal.", do="Name the signal.", code="settings_without_signal"
            )

    def needs(self, evidence: Evidence) -> Needs:
        """Candidates and controls, scored by every model that the signal compares."""
        signal = self._choose_signal(evidence)
        trained = [role for role in (REFERENCE, SHADOW) if role in signal.needs and self.signal is not None]
        first = Needs(
            access=signal.needs,
            given=frozenset({TARGET, AUDITED, CONTROLS}),
            unless_members=frozenset({CONTROLS}),
            fleet={role: self.shadows if role == SHADOW else 1 for role in trained},
        )
        if not first.given - first.unless_members <= evidence.roles:
            return first
        _refuse_models(signal, evidence)
        known = find_members(evidence)
        if CONTROLS not in evidence.roles and not has_both(known):
            return first
        corpora, train, models = self._plan_training(signal, evidence)
        if CANARIES in evidence.files:
            canaries = Canaries.load(evidence.files[CANARIES])
            corpora[CANARY_TEXTS] = build_canary_corpus(canaries, evidence.models[TARGET].kind)
        controls = POPULATION if POPULATION in corpora else CONTROLS
        available_roles = {*evidence.corpora, *corpora}
        roles = [role for role in (AUDITED, controls, CANARY_TEXTS) if role in available_roles]
        derived = derive_corpora(signal, evidence, [role for role in roles if role in evidence.corpora])
        return replace(
            first,
            corpora={**corpora, **derived},
            train=train,
            score=frozenset(
                {(model, role) for model in models for role in roles} | {(TARGET, role) for role in derived}
            ),
        )

    def run(self, evidence: Evidence, rng: np.random.Generator, workspace: Workspace = NO_WORKSPACE) -> Result:
        """Which candidates are members, and how well that can be inferred where ground truth is known."""
        return build_result(self, self._choose_signal(evidence), evidence)

    @property
    def claim(self) -> Claim:
        """The privacy claim of the model."""
        return Claim(epsilon=self.claimed_epsilon, delta=self.delta, unit=self.claimed_unit)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, as a result writes them down."""
        return {**asdict(self), "fpr": list(self.fpr), "signal_settings": dict(self.signal_settings)}

    def _choose_signal(self, evidence: Evidence) -> Signal:
        """The signal; as long as no model is known, the one that needs more."""
        compares = not evidence.models or evidence.models_of_role(REFERENCE)
        return make_signal(self.signal or ("ratio" if compares else "loss"), **self.signal_settings)

    def _plan_training(
        self, signal: Signal, evidence: Evidence
    ) -> tuple[dict[str, Corpus], dict[str, Cohorts], tuple[str, ...]]:
        """The corpora and cohorts of models that have to be trained, and all models that score."""
        corpora, train = dict[str, Corpus](), dict[str, Cohorts]()
        scoring = {TARGET: None}
        for role in (REFERENCE, SHADOW):
            scoring |= dict.fromkeys(evidence.models_of_role(role) if role in signal.needs else ())
        if REFERENCE in signal.needs and (not evidence.models_of_role(REFERENCE) or POPULATION in evidence.corpora):
            halves, train[REFERENCE_HALF] = build_reference_cohorts(evidence)
            corpora |= halves
        if SHADOW in signal.needs and (not evidence.models_of_role(SHADOW) or POOL in evidence.corpora):
            corpora[POOL], train[POOL] = build_shadow_cohorts(evidence, self.shadows)
        scoring |= {name: None for cohorts in train.values() for name in cohorts.models}
        return corpora, train, tuple(scoring)


def _refuse_models(signal: Signal, evidence: Evidence) -> None:
    """Refuse models that the signal of a membership audit cannot score or compare, before any computation."""
    target = evidence.models[TARGET]
    if target.kind not in signal.kinds:
        fitting = [name for name in SIGNALS.names if target.kind in SIGNALS.load(name).kinds]
        raise PlanError(
            f"The signal {signal.name!r} does not support a {target.kind} model.",
            do=f"Choose one of {', '.join(fitting)}.",
            code="unsupported_kind",
        )
    find_embedder(evidence)
    for role in signal.needs:
        for name in evidence.models_of_role(role):
            _refuse_different_models(target, evidence.models[name], name)
    if SHADOW in signal.needs:
        refuse_unknown_training_sets(evidence)
    if REFERENCE in signal.needs:
        refuse_target_as_reference(evidence)
    if REFERENCE in signal.needs and not evidence.models_of_role(REFERENCE) and CONTROLS not in evidence.corpora:
        raise PlanError(
            f"The signal {signal.name!r} needs a reference model, and would train one on half of the controls; neither "
            "is given.",
            do="Give a reference (--reference, reference=) or controls (--controls, controls=).",
            code="missing_controls",
        )


def _refuse_different_models(target: Model, other: Model, name: str) -> None:
    """Refuse a membership audit of models that are scored differently from the target."""
    if other.kind != target.kind:
        raise PlanError(
            f"The {name} is a {other.kind} model and the target a {target.kind} one: their scores are not comparable.",
            do=f"Give a {target.kind} model.",
            code="different_kinds",
        )
    if target.kind == "masked" and other.question != target.question:
        raise PlanError(
            f"The {name} is scored with other mask patterns than the target.",
            do="Score both in the same way.",
            code="different_questions",
        )
