"""The provenance audit: were this person's texts used to train this model?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.common.ground_truth import find_members
from recollect.audits.common.matching import match_units
from recollect.audits.common.outcomes import NO_POWER
from recollect.audits.common.result_builder import build_refusal
from recollect.audits.provenance.calibrated import CalibratedScorer
from recollect.audits.provenance.comparison import ComparisonScorer, TestRule
from recollect.audits.provenance.decisions import decide
from recollect.audits.provenance.histogram import Features, Histogram
from recollect.audits.provenance.needed_controls import ControlSupply
from recollect.audits.provenance.queries import (
    CALIBRATION,
    CALIBRATION_PIECES,
    MIN_WORDS,
    PIECES,
    QUERIES,
    TRAINING,
    Select,
    choose_queries,
    count_queried_pieces,
    find_owner,
    find_unqueried_duplicates,
)
from recollect.audits.provenance.reference_users import SHADOW, Reference, divide_reference
from recollect.audits.provenance.result import ScoredPeople, build_result
from recollect.audits.provenance.safeguards import Safeguards, check_people, play_placebo
from recollect.audits.provenance.text_amounts import TextAmounts
from recollect.audits.provenance.view import PRESENTATION, QUESTION, VERB
from recollect.audits.provenance.word_alignment import WordRanks, align_everybody, align_words
from recollect.audits.provenance.word_frequencies import read_shadow_texts
from recollect.audits.verb import Verb
from recollect.audits.workspace import NO_WORKSPACE, Workspace
from recollect.checks import check_at_least, check_between, check_one_of
from recollect.corpora.times import Period
from recollect.errors import NotEnoughData, PlanError
from recollect.models.access import Access
from recollect.results.presentation import Presentation
from recollect.results.result import Result
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence

KINDS = ("causal", "seq2seq")
"""Kinds of models that rank words: word prediction, dialogue and translation."""


@dataclass(frozen=True, kw_only=True)
class ProvenanceAudit:
    """Whether the texts of one person, or of each of many, were used to train a model that outputs ranked words only.

    Shadow models are trained on halves of the users of a reference corpus. Some reference users are held out from all
    of them: the target scores their texts too, and their scores are the null distribution.
    """

    method: Literal["calibrated", "histogram"] = "calibrated"
    """`calibrated` controls the error rate; `histogram` is the paper's Algorithm 1."""
    shadows: int = 10
    """Number of shadow models to train."""
    queries: int | None = 32
    """How many texts of each person the target scores; `none` for all."""
    budget: int | None = None
    """The query budget: how many texts the target may score in all, calibration users included; no limit by
    default."""
    select: Select = "surprise"
    """How these texts are selected, before any model scores anything."""
    top_k: int | None = None
    """Use only the target's top k words; by default all that it outputs."""
    pieces: int | None = None
    """Also query every text in overlapping pieces of so many words (`calibrated`): each is a further query, and ranks
    its words once more. For targets that output one word or a few."""
    calibration: float = 0.25
    """Share of the controls' users who are held out from all shadow models, for calibration."""
    artificial: int = 600
    """Maximum number of artificial users into which controls without a user column are divided."""
    vocabulary: int = 5000
    """The assumed size of the target's vocabulary (the paper's 5,000): rarer words count as one when texts are
    selected, and the histogram spans so many ranks."""
    least: int = 20
    """Minimum number of words, within the vocabulary of all models, that a person must have written."""
    bins: int = 100
    """Number of bins of the histogram."""
    features: Features = "scaled"
    """The features of the histogram's classifier: `scaled` as in the authors' code, or `counts` as printed."""
    period: Period = "month"
    """Calendar period within which records are compared, if both corpora have times: week, month or quarter."""
    alpha: float = 0.05
    """The false discovery rate: which share of the people found may be found wrongly, on average."""

    name: ClassVar[str] = "provenance"
    question: ClassVar[str] = QUESTION
    paper: ClassVar[str] = "Song and Shmatikov 2019, Auditing Data Provenance in Text-Generation Models"
    verb: ClassVar[Verb] = VERB
    presentation: ClassVar[Presentation] = PRESENTATION

    def __post_init__(self) -> None:
        check_one_of(("calibrated", "histogram"), method=self.method)
        check_one_of(get_args(Select), select=self.select)
        check_one_of(("scaled", "counts"), features=self.features)
        check_one_of(get_args(Period), period=self.period)
        check_at_least(1, shadows=self.shadows)
        wanted = {name: getattr(self, name) for name in ("queries", "budget", "top_k")}
        check_at_least(1, **{name: value for name, value in wanted.items() if value is not None})
        if self.pieces is not None:
            check_at_least(MIN_WORDS, pieces=self.pieces)
            if self.method == "histogram":
                raise PlanError(
                    "The histogram uses the ranks in whole texts.",
                    do="Leave out pieces, or use calibrated.",
                    code="pieces_with_histogram",
                )
        check_at_least(1, artificial=self.artificial, vocabulary=self.vocabulary, least=self.least, bins=self.bins)
        check_between(0, 1, calibration=self.calibration, alpha=self.alpha)

    def needs(self, evidence: Evidence) -> Needs:
        """Shadows, and the selected texts scored by them and by the target; nothing with too few calibration users."""
        access = {TARGET: Access.top(self.top_k or 1)}
        given = frozenset({TARGET, AUDITED, CONTROLS})
        nothing_yet = Needs(access=access, given=given, fleet={SHADOW: self.shadows})
        if not given <= evidence.roles:
            return nothing_yet
        if (kind := evidence.models[TARGET].kind) not in KINDS:
            raise PlanError(
                f"Provenance needs a model that ranks the next word; the target is a {kind} model.",
                do="Give a causal or sequence-to-sequence model; the membership audit accepts other kinds.",
                code="unsupported_kind",
            )
        if kind == "seq2seq" and self.pieces is not None:
            raise PlanError(
                "Only plain texts can be queried in pieces, and the target is a sequence-to-sequence model.",
                do="Leave out pieces.",
                code="pieces_of_pairs",
            )
        reference = self._divide_reference(evidence)
        if reference is None:
            return nothing_yet
        roles = (QUERIES, CALIBRATION, TRAINING, PIECES, CALIBRATION_PIECES)
        corpora = {role: evidence.corpora[role] for role in roles if role in evidence.corpora}
        try:
            corpora = corpora or choose_queries(self, evidence, reference)
        except NotEnoughData:
            return nothing_yet  # `run` states the reason
        models = (TARGET, *reference.shadows)
        scored_pairs = {(model, role) for model in models for role in corpora} - {(TARGET, TRAINING)}
        return Needs(
            access=access,
            given=given,
            fleet={SHADOW: self.shadows},
            corpora={**corpora, reference.role: reference.corpus},
            train={reference.role: reference.cohorts},
            score=frozenset(scored_pairs),
        )

    def run(self, evidence: Evidence, rng: np.random.Generator, workspace: Workspace = NO_WORKSPACE) -> Result:
        """A decision about each person, with its p-value; and its accuracy where ground truth is known."""
        reference = self._divide_reference(evidence)
        if QUERIES not in evidence.corpora or reference is None:
            return self._refuse(evidence, reference)
        workspace.progress("reading answers", 0, 2)
        words, scorer = self._build_scorer(evidence, reference)
        if (silence := self._refuse_equal_ranks(evidence, scorer.words)) is not None:
            return build_refusal(self, silence)
        workspace.progress("comparing people", 1, 2)
        sides = evidence.corpora[QUERIES], evidence.corpora[CALIBRATION]
        people = len({find_owner(record) for record in sides[0]})
        amounts = TextAmounts.of(words, people, sides, self.period)
        rule = TestRule(alpha=self.alpha, least=self.least)
        matching = match_units(
            amounts.build_units(0), amounts.build_units(1), seed=evidence.seed, truncate=self.pieces is None
        )
        try:
            decisions = decide(scorer, amounts, matching, rule)
        except NotEnoughData as refusal:
            return build_refusal(self, refusal)
        everybody = {find_owner(record) for record in evidence.corpora[AUDITED]}
        safeguards = Safeguards(
            duplicates=find_unqueried_duplicates(evidence, reference),
            comparability=check_people(matching, sides, seed=evidence.seed, period=self.period),
            placebo=play_placebo(scorer, amounts, matching, rule, seed=evidence.seed),
            matching=matching,
            supply=ControlSupply(
                controls=len(reference.cohorts.units), calibrating=len(reference.calibration), share=self.calibration
            ),
        )
        found = ScoredPeople(
            decisions=decisions,
            words=words,
            pieces=tuple(count_queried_pieces(evidence, role) for role in (PIECES, CALIBRATION_PIECES)),
            silent=tuple(sorted(everybody.difference(decisions.users))),
            truth=_find_truth_of_provenance(evidence),
            safeguards=safeguards,
        )
        return build_result(self, found)

    def _divide_reference(self, evidence: Evidence) -> Reference | None:
        """The reference users, divided; None if they are too few."""
        return divide_reference(evidence, shadows=self.shadows, share=self.calibration, artificial=self.artificial)

    def _refuse(self, evidence: Evidence, reference: Reference | None) -> Result:
        """The result when there are too few calibration users; nothing was trained or scored."""
        refusal = NotEnoughData("No text was queried.", code="no_queries")
        try:
            choose_queries(self, evidence, reference)
        except NotEnoughData as found:
            refusal = found
        return build_refusal(self, refusal)

    def _find_shown(self, evidence: Evidence) -> int | None:
        """How many of its most likely tokens the target shows; None for all."""
        return min([k for k in (self.top_k, evidence.models[TARGET].access.k) if k is not None], default=None)

    def _refuse_equal_ranks(self, evidence: Evidence, words: WordRanks) -> NotEnoughData | None:
        """Why nothing can be told if the target shows the same of all words; None if it does not."""
        ranks = words.limit_ranks(0, self._find_shown(evidence))
        if not len(ranks) or (ranks != ranks[0]).any():
            return None
        many = f"{len(ranks):,} words"
        return NotEnoughData(
            f"The target gives all {many} the same rank, so that nothing can be told from its ranks."
            if np.isfinite(ranks[0])
            else f"The target shows none of the {many}, so that nothing can be told from its ranks.",
            do="Give a target that ranks more words, or query more texts (queries, pieces).",
            code=NO_POWER,
        )

    def _build_scorer(self, evidence: Evidence, reference: Reference) -> tuple[WordRanks, ComparisonScorer]:
        """The words of audited people and calibration users, and what scores them."""
        k, shadows = self._find_shown(evidence), reference.shadows
        counts = read_shadow_texts(reference, self.vocabulary).frequencies.counts
        if self.method == "calibrated":
            words, with_pieces = align_everybody(evidence, [TARGET, *shadows], counts)
            return words, CalibratedScorer(with_pieces, k)
        words, _ = align_everybody(evidence, [TARGET], counts)
        trained = [align_words(evidence, TRAINING, [shadow]) for shadow in shadows]
        labelled = [(each, reference.find_trained(each.users)[number]) for number, each in enumerate(trained)]
        return words, Histogram(
            words=words,
            shadows=labelled,
            vocabulary=self.vocabulary,
            k=k,
            bins=self.bins,
            features=self.features,
            seed=evidence.seed,
        )


def _find_truth_of_provenance(evidence: Evidence) -> dict[str, bool]:
    """Whose texts were used, as far as provenance is told: one text is enough for yes, and all must be known for no."""
    known, found = find_members(evidence), dict[str, set[bool | None]]()
    for record in evidence.corpora[AUDITED] if known is not None else ():
        found.setdefault(find_owner(record), set()).add(None if known is None else known.is_member(record))
    return {user: True in values for user, values in found.items() if True in values or values == {False}}
