"""The leakage audit: which users' sequences a model reproduces when it is prompted with its training texts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, get_args

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.common.reference_check import refuse_target_as_reference
from recollect.audits.leakage.comparison import match_users
from recollect.audits.leakage.decisions import count_needed_null_users, decide
from recollect.audits.leakage.leakage_epsilon import Leak, find_leaks
from recollect.audits.leakage.occurrences import count_occurrences, iter_owned_texts
from recollect.audits.leakage.predicted_runs import Numbers, PredictedRuns, collect_predicted_runs
from recollect.audits.leakage.reference_models import (
    LEFT_OUT,
    RETRAINED,
    Group,
    LeaveOutRule,
    ModelPair,
    ReferencePlan,
    choose_reference_models,
    explain_missing_reference,
    plan_leave_out,
)
from recollect.audits.leakage.result import Leaks, build_result
from recollect.audits.leakage.safeguards import check_users
from recollect.audits.leakage.user_runs import RunRule
from recollect.audits.leakage.view import PRESENTATION, QUESTION, VERB
from recollect.audits.verb import Verb
from recollect.audits.workspace import NO_WORKSPACE, Workspace
from recollect.checks import check_at_least, check_between, check_one_of
from recollect.corpora.corpus import Corpus
from recollect.corpora.times import Period
from recollect.errors import PlanError
from recollect.models.access import Access
from recollect.results.presentation import Presentation
from recollect.results.result import Result
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET, Evidence

KINDS = ("causal", "seq2seq")
"""Kinds of models that predict text from left to right."""
STEPS = (1, 3, 5, 10, 20, 50, 100)
"""Values of k for which the leak is reported as well, as far as they are below the one that is set."""


@dataclass(frozen=True, kw_only=True)
class LeakageAudit:
    """Which sequences of a single user the model predicts, and how much of that is due to training on the user."""

    top_k: int = 1
    """A word counts as predicted if every token of it is among the model's top k."""
    min_length: int = 1
    """Minimum number of words in a sequence."""
    folds: int = 8
    """With a recipe and no reference, how many references are trained, each without two of as many folds of the
    users; only one, without all users of the sequences, if those are few (`removable`). 0 to train none: without any
    reference there is no leakage epsilon."""
    removable: float = 0.1
    """The largest share of users that may be left out together: up to it, one reference is trained without all users
    of sequences; 0 for folds."""
    deniable_at: float = 1.0
    """Plausible deniability: up to this epsilon (nats per word) a user can deny having been in the training set."""
    alpha: float = 0.05
    """The significance level: how often a model trained on none of the users is found to leak; also the false discovery
    rate of flagged users."""
    period: Period = "month"
    """Calendar period within which records are compared, if both corpora have times: week, month or quarter."""
    show_text: bool = False
    """Show the texts of the sequences in the tables."""

    name: ClassVar[str] = "leakage"
    question: ClassVar[str] = QUESTION
    paper: ClassVar[str] = "Inan et al. 2021, Training Data Leakage Analysis in Language Models"
    verb: ClassVar[Verb] = VERB
    presentation: ClassVar[Presentation] = PRESENTATION

    def __post_init__(self) -> None:
        check_at_least(1, top_k=self.top_k, min_length=self.min_length)
        check_at_least(0, folds=self.folds, deniable_at=self.deniable_at)
        check_between(0, 1, alpha=self.alpha)
        check_one_of(get_args(Period), period=self.period)
        if not 0 <= self.removable <= 0.5:
            raise PlanError(
                f"removable is {self.removable}.",
                do="Give a share of the users between 0 and 0.5.",
                code="removable_out_of_range",
            )
        if 0 < self.folds < 3:
            raise PlanError(
                f"{self.folds} folds leave no users to train on.",
                do="Use at least 3 folds, better 8.",
                code="too_few_folds",
            )

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, as a result writes them down."""
        return asdict(self)

    @property
    def steps(self) -> list[int]:
        """The values of k for which leaks are reported."""
        return sorted({self.top_k, *(k for k in STEPS if k < self.top_k)})

    def needs(self, evidence: Evidence) -> Needs:
        """The target's scores of all users; then references, and their scores of users they were not trained on."""
        given, trains = frozenset({TARGET, AUDITED}), self._trains_references(evidence)
        first = Needs(
            access={
                TARGET: Access.top(self.top_k),
                REFERENCE: Access(k=1, logprob="any", distribution=False, steps=False),
            },
            given=given,
            fleet={LEFT_OUT: self.folds} if trains else {},
            later=_LATER if trains else "",
        )
        if not given <= evidence.roles:
            return first
        if (kind := evidence.models[TARGET].kind) not in KINDS:
            raise PlanError(
                f"Leakage needs a model that predicts text from left to right; the target is a {kind} model.",
                do="Give a causal or sequence-to-sequence model; the membership audit accepts other kinds.",
                code="not_left_to_right",
            )
        refuse_target_as_reference(evidence)
        if evidence.members is not None and not trains:
            raise PlanError(
                "Members are given, but no recipe: leakage uses them only to train references on members.",
                do="Leave them out; give the members' records as the corpus, and those of non-members as --controls.",
                code="members_not_used",
            )
        if not self._lacks_references(evidence):
            plan = self._choose_references(evidence)
            groups = [group for group in (plan.audited, plan.null) if group is not None]
            return replace(first, score=frozenset({(TARGET, AUDITED)}).union(*(group.sources for group in groups)))
        if not evidence.has_answers(TARGET, AUDITED):
            return replace(first, score=frozenset({(TARGET, AUDITED)}))
        rule = LeaveOutRule(folds=self.folds, removable=self.removable, needed=count_needed_null_users(self.alpha))
        left_out = plan_leave_out(evidence, self._find_owners(evidence), rule)
        return replace(first, corpora=left_out.corpora, train={AUDITED: left_out.cohorts})

    def run(self, evidence: Evidence, rng: np.random.Generator, workspace: Workspace = NO_WORKSPACE) -> Result:
        """The sequences, their users, and whether training on those users explains that they are predicted."""
        plan = self._choose_references(evidence)
        workspace.progress("finding predicted runs", 0, 3)
        numbers: Numbers = {}
        read = collect_predicted_runs(evidence, plan.audited, numbers, self.steps, self.min_length)
        null = None
        if plan.null is not None:
            null = collect_predicted_runs(evidence, plan.null, numbers, [self.top_k], self.min_length)
            self._refuse_meaningless_k(null)
        workspace.progress("counting occurrences", 1, 3)
        names = list(numbers)
        counts = count_occurrences(names, iter_owned_texts(evidence.corpora[AUDITED]))
        among_controls = count_occurrences(names, iter_owned_texts(evidence.corpora.get(CONTROLS, Corpus.of([]))))
        workspace.progress("comparing with references", 2, 3)
        alone = counts.users + among_controls.users == 1
        by_k = dict.fromkeys(self.steps, _NONE) | find_leaks(evidence, plan.audited, read, names, counts.users == 1)
        null_leaks = find_leaks(evidence, plan.null, null, names, alone) if plan.null and null else {}
        rule = RunRule(
            k=self.top_k,
            in_nats=bool(plan.description) and evidence.models[TARGET].access.logprob != "none",
            period=self.period,
        )
        matched = match_users(evidence, plan, alone, (read, null), rule)
        matched = replace(matched, comparability=check_users(evidence, matched, self.period))
        comparison = replace(
            matched.comparison,
            leaks={run: leak for run, leak in by_k[self.top_k].items() if alone[run]},
            null_leaks=null_leaks.get(self.top_k, _NONE),
        )
        leaks = Leaks(
            by_k=by_k,
            read=read,
            counts=counts,
            references=plan.description,
            no_reference=explain_missing_reference(evidence, plan),
            by_record=not evidence.corpora[AUDITED].summary.users,
            matched=matched,
            seed=evidence.seed,
        )
        return build_result(self, leaks, decide(comparison, alpha=self.alpha))

    def _refuse_meaningless_k(self, null: PredictedRuns) -> None:
        """Refuse a k at which every word of users whom the model was not trained on counts as predicted.

        Raises:
            PlanError: So many tokens are shown that nothing depends on the model.
        """
        if self.top_k > 1 and null.all_predicted:
            raise PlanError(
                f"With the top {self.top_k:,} tokens every word of the {null.words:,} that held-out users wrote counts "
                "as predicted: k is as large as the model's vocabulary, or nearly, and would call any text reproduced.",
                do="Choose a smaller --top-k; 1 is what a user sees at the press of TAB, 3 to 5 a list of suggestions.",
                code="k_too_large",
            )

    def _trains_references(self, evidence: Evidence) -> bool:
        """Whether references are trained: there is a recipe for them, and none is given."""
        return evidence.trainable and bool(self.folds) and not evidence.models_of_role(REFERENCE)

    def _lacks_references(self, evidence: Evidence) -> bool:
        """Whether references are to be trained and are not there yet."""
        trained = any(evidence.models_of_role(role) for role in (RETRAINED, LEFT_OUT))
        return self._trains_references(evidence) and not trained and evidence.models[TARGET].access.logprob != "none"

    def _choose_references(self, evidence: Evidence) -> ReferencePlan:
        """What is compared; no references where the target shows no probabilities."""
        if evidence.models[TARGET].access.logprob == "none":
            return choose_reference_models(replace(evidence, models={TARGET: evidence.models[TARGET]}))
        return choose_reference_models(evidence)

    def _find_owners(self, evidence: Evidence) -> frozenset[str]:
        """The users of sequences that are theirs alone and that the target predicts."""
        numbers: Numbers = {}
        everybody = Group(corpus=AUDITED, pairs=(ModelPair(model=(TARGET, AUDITED)),))
        collect_predicted_runs(evidence, everybody, numbers, [self.top_k], self.min_length)
        counts = count_occurrences(list(numbers), iter_owned_texts(evidence.corpora[AUDITED]))
        return frozenset(counts.names[owner] for owner in np.unique(counts.owner[counts.users == 1]))


_NONE: dict[int, Leak] = {}
_LATER = (
    "Which users a reference must leave out is known only after the target has scored the corpus: a reference and a "
    "null model without the users of its sequences if those are few, else one model per fold."
)
