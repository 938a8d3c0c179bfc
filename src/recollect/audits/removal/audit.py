"""The removal audit: has this data set really been removed from the model?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.common.duplicates import find_duplicates
from recollect.audits.common.reference_check import refuse_target_as_reference
from recollect.audits.common.result_builder import build_refusal
from recollect.audits.removal.calibrated import compare_set, compare_users
from recollect.audits.removal.ema import Scope, Test, collect_votes, compute_ema_rho
from recollect.audits.removal.ks import CALIBRATION_MODEL, QUERY_MODEL, measure_ks_ratio
from recollect.audits.removal.result import (
    UNTESTED,
    build_ema_result,
    build_ks_result,
    build_set_result,
    build_user_result,
)
from recollect.audits.removal.view import PRESENTATION, QUESTION, VERB
from recollect.audits.verb import Verb
from recollect.audits.workspace import NO_WORKSPACE, Workspace
from recollect.checks import check_at_least, check_between, check_one_of
from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import build_cohorts, draw_halves, list_units
from recollect.corpora.times import Period
from recollect.errors import CorpusError, NotEnoughData, PlanError
from recollect.models.access import Access
from recollect.results.presentation import Presentation
from recollect.results.result import Result
from recollect.signals.aggregation import ANY_LOGPROB, DISTRIBUTION
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, SHADOW, TARGET, Evidence

Method = Literal["calibrated", "ema", "ks"]
MIN_CONTROLS: Final = 4
"""Units that a calibration set must have to be halved at all."""


@dataclass(frozen=True, kw_only=True)
class RemovalAudit:
    """Whether a set of records is still in a model, compared with records that were never in it."""

    method: Method = "calibrated"
    """`calibrated` controls its error rates; `ema` (Huang et al. 2021) and `ks` (Liu & Tsaftaris 2020) are as
    published."""
    by: Literal["set", "user"] = "set"
    """What is decided about: the set as a whole, or every person in it."""
    models: int = 8
    """How many calibration models `calibrated` trains, each on half of the controls; 0 for none, if references are
    given. Without a recipe, the target is compared with references only."""
    neighbours: int | None = None
    """How many nearest controls each audited record is compared with; 0 for all controls equally; by default 3 where
    records have labels, else 0."""
    tolerance: float = 0.5
    """A set counts as gone only if it is ruled out that this share of it, or more, is still in the model."""
    alpha: float | None = None
    """The significance level α of either decision; by default 0.05, and 0.1 with `ema`, as in the paper."""
    confidence: float = 0.95
    """The confidence level of intervals."""
    thresholds: Scope = "global"
    """For `ema`: one threshold for all classes, or one per class."""
    test: Test = "t"
    """For `ema`: the test that compares the votes with all ones, `t` or `ks`."""
    period: Period = "month"
    """Calendar period by which dates are compared, if both corpora have times: week, month or quarter."""

    name: ClassVar[str] = "removal"
    question: ClassVar[str] = QUESTION
    paper: ClassVar[str] = "Huang et al. 2021, EMA: Auditing Data Removal from Trained Models"
    verb: ClassVar[Verb] = VERB
    presentation: ClassVar[Presentation] = PRESENTATION

    def __post_init__(self) -> None:
        check_one_of(("calibrated", "ema", "ks"), method=self.method)
        check_one_of(("set", "user"), by=self.by)
        check_one_of(("global", "per-class"), thresholds=self.thresholds)
        check_one_of(("t", "ks"), test=self.test)
        check_one_of(get_args(Period), period=self.period)
        check_between(0, 1, alpha=self.level, confidence=self.confidence, tolerance=self.tolerance)
        check_at_least(0, models=self.models, neighbours=self.neighbours or 0)
        if self.models % 2:
            raise PlanError(
                f"{self.models} calibration models are requested, but they are trained in pairs.",
                do="Choose an even number.",
                code="models_not_paired",
            )
        if self.by == "user" and self.method != "calibrated":
            raise PlanError(
                f"The method {self.method!r} decides about whole sets.",
                do="Use `calibrated` for users.",
                code="method_for_sets_only",
            )

    @property
    def level(self) -> float:
        """The significance level."""
        return (0.1 if self.method == "ema" else 0.05) if self.alpha is None else self.alpha

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, as a result writes them down."""
        return {**asdict(self), "alpha": self.level}

    def needs(self, evidence: Evidence) -> Needs:
        """First the target's scores of both sets, which it may be unable to read; then models to compare with."""
        given = frozenset({TARGET, AUDITED, CONTROLS} | ({REFERENCE} if self._alone else frozenset()))
        instead = {SHADOW: REFERENCE} if self.method == "calibrated" else {}
        needed = Needs(access=self._build_access(), given=given, fleet=self._count_fleet(), instead=instead)
        if not {TARGET, AUDITED, CONTROLS} <= evidence.roles:
            return needed
        refuse_overlap(evidence)
        self._refuse_kinds(evidence)
        models = {TARGET, *evidence.models_of_role(REFERENCE)} if self.method == "calibrated" else {TARGET}
        train: dict[str, Cohorts] = {}
        if evidence.has_answers(TARGET, AUDITED) and evidence.has_answers(TARGET, CONTROLS):
            train = self._plan_training(evidence)
            models |= {name for cohorts in train.values() for name in cohorts.models}
            models |= set(evidence.models_of_role(SHADOW))
        scored_pairs = frozenset((model, corpus) for model in models for corpus in (AUDITED, CONTROLS))
        return replace(needed, train=train, score=scored_pairs)

    def run(self, evidence: Evidence, rng: np.random.Generator, workspace: Workspace = NO_WORKSPACE) -> Result:
        """Whether the set is still there or gone, or whether that is inconclusive."""
        try:
            if self.method == "ema":
                votes = collect_votes(evidence, scope=self.thresholds)
                return build_ema_result(self, votes, compute_ema_rho(votes.memorised, test=self.test))
            if self.method == "ks":
                return build_ks_result(self, measure_ks_ratio(evidence))
            if self.by == "user":
                return build_user_result(self, compare_users(self, evidence))
            return build_set_result(self, compare_set(self, evidence))
        except NotEnoughData as refusal:
            return build_refusal(self, refusal, finding="fraction_still_in", untested=UNTESTED, settings=self.settings)

    @property
    def _alone(self) -> bool:
        """Whether the target is compared with references only, and with no calibration models."""
        return self.method == "calibrated" and not self.models

    def _build_access(self) -> dict[str, Access]:
        """The access that each model must offer."""
        if self.method == "ks":
            return dict.fromkeys((TARGET, QUERY_MODEL, CALIBRATION_MODEL), DISTRIBUTION)
        shown = ANY_LOGPROB if self.method == "calibrated" else DISTRIBUTION
        return dict.fromkeys((TARGET, SHADOW, *((REFERENCE,) if self.method == "calibrated" else ())), shown)

    def _count_fleet(self) -> dict[str, int]:
        """How many models are trained."""
        if self.method == "ks":
            return {QUERY_MODEL: 1, CALIBRATION_MODEL: 1}
        count = self.models if self.method == "calibrated" else 1
        return {SHADOW: count} if count else {}

    def _plan_training(self, evidence: Evidence) -> dict[str, Cohorts]:
        """The models to train, and on what."""
        audited, controls = evidence.corpora[AUDITED], evidence.corpora[CONTROLS]
        if self.method == "ks":
            return {
                AUDITED: _train_on_all(audited, QUERY_MODEL, evidence.seed),
                CONTROLS: _train_on_all(controls, CALIBRATION_MODEL, evidence.seed),
            }
        unit: Unit = "user" if all(record.user is not None for record in controls) else "record"
        units = list_units(controls, unit)
        if unit == "record":  # of two copies one must not train a model and the other not
            copies = find_duplicates((), controls, own=True).controls
            units = tuple(name for name in units if name not in copies)
        alone = self.method == "calibrated" and not evidence.trainable and bool(evidence.models_of_role(REFERENCE))
        if len(units) < MIN_CONTROLS or not self._count_fleet() or self._has_shadows(evidence) or alone:
            return {}
        members = draw_halves(units, self._count_fleet()[SHADOW], seed=evidence.seed, name=SHADOW)
        return {CONTROLS: build_cohorts(controls, members, unit=unit, seed=evidence.seed)}

    def _has_shadows(self, evidence: Evidence) -> bool:
        """Whether the user gave calibration models, with cohorts of the controls that name them."""
        known = evidence.cohorts.get(CONTROLS)
        given = set(evidence.models_of_role(SHADOW))
        mine = {f"{SHADOW}-{i}" for i in range(self._count_fleet().get(SHADOW, 0))}
        return bool(given) and known is not None and given != mine

    def _refuse_kinds(self, evidence: Evidence) -> None:
        """Refuse models that cannot be compared."""
        target = evidence.models[TARGET]
        if self.method == "ks" and target.kind != "classifier":
            raise PlanError(
                f"The method 'ks' compares class probabilities, and the target is a {target.kind} model.",
                do="Use `calibrated`, which supports every kind of model.",
                code="not_a_classifier",
            )
        refuse_target_as_reference(evidence)
        for name in evidence.models_of_role(REFERENCE):
            if evidence.models[name].kind != target.kind:
                raise PlanError(
                    f"The {name} is a {evidence.models[name].kind} model and the target a {target.kind} one.",
                    do=f"Give a {target.kind} model.",
                    code="reference_of_another_kind",
                )


def _train_on_all(corpus: Corpus, name: str, seed: int) -> Cohorts:
    """The cohorts of a removal audit in which all of a corpus trains one model."""
    return build_cohorts(corpus, {name: list_units(corpus, "record")}, unit="record", seed=seed)


def refuse_overlap(evidence: Evidence) -> None:
    """Refuse a removal audit of an empty query set, or with controls that share a person with it.

    Raises:
        CorpusError: They do.
    """
    audited, controls = evidence.corpora[AUDITED], evidence.corpora[CONTROLS]
    owners = {r.user for r in audited if r.user is not None}
    if not len(audited):
        raise CorpusError(
            "The query set is empty.", do="Give the records whose removal is in question.", code="empty_query_set"
        )
    shared = sorted(owners.intersection(r.user for r in controls if r.user is not None))
    if shared:
        raise CorpusError(
            f"{len(shared):,} users are both in the calibration set and in the query set, such as {shared[0]!r}.",
            do="Controls must be people who are not in the training set: leave these out.",
            code="users_in_both_sets",
        )
