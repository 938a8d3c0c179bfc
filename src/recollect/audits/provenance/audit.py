"""The provenance audit: were this person's texts used to train this model?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.common.builder import build_refusal
from recollect.audits.desk import BARE_DESK, Desk
from recollect.audits.provenance.calibrated import Calibrated
from recollect.audits.provenance.histogram import Features, Histogram
from recollect.audits.provenance.judging import Scorer, decided
from recollect.audits.provenance.pieces import FEWEST, place_of
from recollect.audits.provenance.planning import (
    CALIBRATION,
    CALIBRATION_PIECES,
    PIECES,
    QUERIES,
    TRAINING,
    chosen_queries,
)
from recollect.audits.provenance.queries import Select, owner
from recollect.audits.provenance.reference import SHADOW, Reference, divided
from recollect.audits.provenance.reporting import Told
from recollect.audits.provenance.taught import taught
from recollect.audits.provenance.unlike import group_shift
from recollect.audits.provenance.view import PRESENTATION, VERB
from recollect.audits.provenance.words import Words, aligned
from recollect.audits.verb import Verb
from recollect.corpora.cohorts import Cohorts
from recollect.errors import NotEnoughData, PlanError
from recollect.models.access import Access
from recollect.results.presentation import Presentation
from recollect.results.result import Result
from recollect.settings import at_least, between, one_of
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence

KINDS = ("causal", "seq2seq")
"""Models whose words can be asked for: word prediction, dialogue and translation."""


@dataclass(frozen=True, kw_only=True)
class ProvenanceAudit:
    """Whether the texts of one person, or of each of many, were used to train a model that shows ranked words only.

    Shadow models are trained on halves of the users of a reference corpus. Some reference users are kept from all of
    them; the target is asked about those too, and nobody is accused who scores as they do.
    """

    method: Literal["calibrated", "histogram"] = "calibrated"
    """`calibrated`: ours. `histogram`: the paper's Algorithm 1."""
    shadows: int = 10
    """How many shadow models are trained."""
    queries: int | None = 32
    """How many texts of each person the target is asked about; None for all."""
    budget: int | None = None
    """How many texts it may be asked about in all, those of calibration users included; None for no limit."""
    select: Select = "surprise"
    """How these texts are chosen; before any model is asked."""
    top_k: int | None = None
    """Look at no more than so many of the target's likeliest words; None for all that it shows."""
    pieces: int | None = None
    """Ask about every text in overlapping pieces of so many words, too (`calibrated`): each is a further query, and a
    further look at its words. For targets that show one word or a few."""
    calibration: float = 0.25
    """The share of the reference users who are kept from all shadows."""
    artificial: int = 600
    """How many users are made up, at most, for a reference corpus that has none."""
    vocabulary: int = 5000
    """How many words the target is taken to know (the paper's 5,000): rarer ones count as one word when texts are
    chosen, and the histogram spans so many ranks."""
    least: int = 20
    """How many words that all models know a person must have."""
    bins: int = 100
    """Of the histogram."""
    features: Features = "scaled"
    """What the histogram's machine sees: `scaled` as in the authors' code, or `counts` as printed."""
    alpha: float = 0.05
    """The share of findings that may be false."""

    name: ClassVar[str] = "provenance"
    question: ClassVar[str] = "Were this person's texts used to train this model?"
    paper: ClassVar[str] = "Song and Shmatikov 2019, Auditing Data Provenance in Text-Generation Models"
    verb: ClassVar[Verb] = VERB
    presentation: ClassVar[Presentation] = PRESENTATION

    def __post_init__(self) -> None:
        one_of(("calibrated", "histogram"), method=self.method)
        one_of(get_args(Select), select=self.select)
        one_of(("scaled", "counts"), features=self.features)
        at_least(1, shadows=self.shadows)
        wanted = {name: getattr(self, name) for name in ("queries", "budget", "top_k")}
        at_least(1, **{name: value for name, value in wanted.items() if value is not None})
        if self.pieces is not None:
            at_least(FEWEST, pieces=self.pieces)
            if self.method == "histogram":
                raise PlanError(
                    "The histogram is made of the ranks in whole texts.", do="Leave out pieces, or take calibrated."
                )
        at_least(1, artificial=self.artificial, vocabulary=self.vocabulary, least=self.least, bins=self.bins)
        between(0, 1, calibration=self.calibration, alpha=self.alpha)

    def needs(self, evidence: Evidence) -> Needs:
        """Shadows, and the chosen texts asked of them and of the target; nothing if too few users calibrate."""
        access = {TARGET: Access.top(self.top_k or 1)}
        given = frozenset({TARGET, AUDITED, CONTROLS})
        nothing_yet = Needs(access=access, given=given, fleet={SHADOW: self.shadows})
        if not given <= evidence.parts:
            return nothing_yet
        if (kind := evidence.models[TARGET].kind) not in KINDS:
            raise PlanError(
                f"Provenance reads the ranks of words as they are written; the target is a {kind} model.",
                do="Give a causal or sequence-to-sequence model; the membership audit takes others.",
            )
        if kind == "seq2seq" and self.pieces is not None:
            raise PlanError(
                "Only texts can be asked about in pieces, and the target answers sources.", do="Leave out pieces."
            )
        reference = self._reference(evidence)
        if reference is None:
            return nothing_yet
        parts = (QUERIES, CALIBRATION, TRAINING, PIECES, CALIBRATION_PIECES)
        corpora = {part: evidence.corpora[part] for part in parts if part in evidence.corpora}
        try:
            corpora = corpora or chosen_queries(self, evidence, reference)
        except NotEnoughData:
            return nothing_yet  # `run` says why
        models = (TARGET, *reference.shadows)
        ask = {(model, part) for model in models for part in corpora} - {(TARGET, TRAINING)}
        return Needs(
            access=access,
            given=given,
            fleet={SHADOW: self.shadows},
            corpora={**corpora, reference.part: reference.corpus},
            train={reference.part: reference.cohorts},
            ask=frozenset(ask),
        )

    def run(self, evidence: Evidence, rng: np.random.Generator, desk: Desk = BARE_DESK) -> Result:
        """A decision about each person, with its p-value; and how good the decisions are, where the truth is known."""
        reference = self._reference(evidence)
        if QUERIES not in evidence.corpora or reference is None:
            return self._refused(evidence, reference)
        desk.progress("reading answers", 0, 2)
        words, scorer = self._method(evidence, reference)
        desk.progress("comparing people", 1, 2)
        people = len({owner(record) for record in evidence.corpora[QUERIES]})
        decisions = decided(scorer, words, people, alpha=self.alpha, least=self.least)
        everybody = {owner(record) for record in evidence.corpora[AUDITED]}
        silent = tuple(sorted(everybody.difference(decisions.users)))
        truth = _truth(evidence.cohorts.get(AUDITED), evidence)
        shift = group_shift(evidence.corpora[QUERIES], evidence.corpora[CALIBRATION])
        told = Told(
            audit=self,
            decisions=decisions,
            words=words,
            pieces=tuple(_pieces(evidence, part) for part in (PIECES, CALIBRATION_PIECES)),
            silent=silent,
            truth=truth,
            shift=shift,
        )
        return told.result()

    def _reference(self, evidence: Evidence) -> Reference | None:
        """The reference users, divided; None if they are too few."""
        return divided(evidence, shadows=self.shadows, share=self.calibration, artificial=self.artificial)

    def _refused(self, evidence: Evidence, reference: Reference | None) -> Result:
        """The result when too few users calibrate; nothing was trained or asked."""
        refusal = NotEnoughData("Nobody was asked about.", code="nobody_asked")
        try:
            chosen_queries(self, evidence, reference)
        except NotEnoughData as found:
            refusal = found
        return build_refusal(self, refusal)

    def _method(self, evidence: Evidence, reference: Reference) -> tuple[Words, Scorer]:
        """The words of audited people and calibration users, and what scores them."""
        shown = [k for k in (self.top_k, evidence.models[TARGET].access.k) if k is not None]
        k, shadows = min(shown, default=None), reference.shadows
        counts = taught(reference, self.vocabulary).frequencies.counts
        if self.method == "histogram":
            words, _ = _words(evidence, [TARGET], counts)
            trained = [aligned(evidence, TRAINING, [shadow]) for shadow in shadows]
            labelled = [(each, _saw(reference, each)[place]) for place, each in enumerate(trained)]
            machine = Histogram(
                words=words,
                shadows=labelled,
                vocabulary=self.vocabulary,
                k=k,
                bins=self.bins,
                features=self.features,
                seed=evidence.seed,
            )
            return words, machine
        words, looks = _words(evidence, [TARGET, *shadows], counts)
        return words, Calibrated(looks, k)


def _words(evidence: Evidence, models: Sequence[str], counts: Mapping[str, int]) -> tuple[Words, Words]:
    """The words of audited people, and then of calibration users; and these with what their pieces show."""
    whole, looks = [], []
    for part, cut in ((QUERIES, PIECES), (CALIBRATION, CALIBRATION_PIECES)):
        words = aligned(evidence, part, models, counts)
        whole.append(words)
        if cut in evidence.corpora:
            words = words.looked_at_again(aligned(evidence, cut, models, counts, place_of))
        looks.append(words)
    return whole[0].beside(whole[1]), looks[0].beside(looks[1])


def _pieces(evidence: Evidence, part: str) -> Mapping[str, int]:
    """How many pieces of whose texts were asked about."""
    return Counter(owner(piece) for piece in evidence.corpora.get(part, ()))


def _saw(reference: Reference, words: Words) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Which shadow saw which of the users whose words these are [shadows, users]."""
    place = {user: i for i, user in enumerate(reference.cohorts.units)}
    return reference.cohorts.matrix[:, [place[user] for user in words.users]]


def _truth(cohorts: Cohorts | None, evidence: Evidence) -> Mapping[str, bool] | None:
    """Who trained the target, if it is known."""
    if cohorts is None:
        return None
    model = TARGET if TARGET in cohorts.models or len(cohorts.models) != 1 else cohorts.models[0]
    members = set(cohorts.members(model))
    found: dict[str, bool] = {}
    for record in evidence.corpora[AUDITED]:
        unit = record.id if cohorts.unit == "record" else owner(record)
        found[owner(record)] = found.get(owner(record), False) or unit in members
    return found
