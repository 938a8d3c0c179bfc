"""The leakage audit: what comes out at the press of TAB, and whose is it?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.desk import BARE_DESK, Desk
from recollect.audits.leakage.counting import Counts, counted
from recollect.audits.leakage.findings import judged
from recollect.audits.leakage.measuring import Asked, Leak, Numbers, collect, leaks
from recollect.audits.leakage.null import Compared
from recollect.audits.leakage.references import LEFT_OUT, Group, divided, groups_of
from recollect.corpora.corpus import Corpus
from recollect.errors import PlanError
from recollect.models.access import Access
from recollect.results.result import Result
from recollect.settings import at_least, between
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET, Evidence

KINDS = ("causal", "seq2seq")
"""Models that are read from left to right, as a reader presses TAB."""
STEPS = (1, 3, 5, 10, 20, 50, 100)
"""Numbers of shown symbols for which the leak is also told, as far as they are below the one asked for."""


@dataclass(frozen=True, kw_only=True)
class LeakageAudit:
    """Which sequences only one user wrote and the model says, and how much of that its training on them explains."""

    top_k: int = 1
    """A word counts as said if every piece of it is among so many of the model's likeliest symbols."""
    min_length: int = 1
    """How many words a sequence must have."""
    folds: int = 0
    """How many references the recipe trains if none is given, each without two of so many folds of the users; 0 for
    none: then there is no leakage epsilon."""
    deniable_at: float = 1.0
    """Up to which epsilon a user can plausibly deny: the model need not have seen them to say what it says."""
    alpha: float = 0.05
    """How often a model that saw nobody may be called one that gives away users; also the share of false flags."""
    show_text: bool = False
    """Whether the tables show what the sequences say."""

    name: ClassVar[str] = "leakage"
    question: ClassVar[str] = "Which sequences of which user come out of the model, and whose could they be?"
    paper: ClassVar[str] = "Inan et al. 2021, Training Data Leakage Analysis in Language Models"

    def __post_init__(self) -> None:
        at_least(1, top_k=self.top_k, min_length=self.min_length)
        at_least(0, folds=self.folds, deniable_at=self.deniable_at)
        between(0, 1, alpha=self.alpha)
        if 0 < self.folds < 3:
            raise PlanError(f"{self.folds} folds leave nobody to train on.", do="Use at least 3 folds, better 8.")

    @property
    def settings(self) -> dict[str, object]:
        """All settings, as a result writes them down."""
        return asdict(self)

    @property
    def steps(self) -> list[int]:
        """For which numbers of shown symbols the leak is told."""
        return sorted({self.top_k, *(k for k in STEPS if k < self.top_k)})

    def needs(self, evidence: Evidence) -> Needs:
        """The target asked about everybody; references, about those whom they have not seen."""
        access = {
            TARGET: Access.top(self.top_k),
            REFERENCE: Access(k=1, logprob="any", distribution=False, steps=False),
        }
        given, fleet = frozenset({TARGET, AUDITED}), {LEFT_OUT: self.folds} if self.folds else {}
        if not given <= evidence.parts:
            return Needs(access=access, given=given, fleet=fleet)
        if (kind := evidence.models[TARGET].kind) not in KINDS:
            raise PlanError(
                f"Leakage follows a text from left to right; the target is a {kind} model.",
                do="Give a causal or sequence-to-sequence model; the membership audit takes others.",
            )
        groups = self._groups(evidence)
        parts = (
            divided(evidence.corpora[AUDITED], self.folds, seed=evidence.seed) if groups[0].corpus != AUDITED else None
        )
        asked = [*_targets(groups), *self._null_asked(evidence, groups)]
        pairs = {(model, each.corpus) for each in asked for model in (each.model, each.reference) if model is not None}
        return Needs(
            access=access,
            given=given,
            fleet=fleet,
            corpora={} if parts is None else parts.corpora,
            train={} if parts is None else {AUDITED: parts.cohorts},
            ask=frozenset({(TARGET, AUDITED), *pairs}),
        )

    def run(self, evidence: Evidence, rng: np.random.Generator, desk: Desk = BARE_DESK) -> Result:
        """The sequences, the users they belong to, and whether the model's training on them explains it."""
        groups = self._groups(evidence)
        numbers: Numbers = {}
        compared = self._null_asked(evidence, groups)
        for each in [Asked(corpus=AUDITED, model=TARGET), *compared]:
            ks = self.steps if each.corpus == AUDITED and each.model == TARGET else [self.top_k]
            collect(evidence, each, numbers, ks, self.min_length)
        desk.progress("counting whose words they are", 1, 3)
        counts = counted(list(numbers), _texts(evidence.corpora[AUDITED]))
        controls = evidence.corpora.get(CONTROLS, Corpus.of([]))
        among_controls = counted(list(numbers), _texts(controls))
        desk.progress("comparing with references", 2, 3)
        unique = counts.users == 1
        found = {k: self._leaks(evidence, _targets(groups), numbers, unique, k) for k in self.steps}
        alone = counts.users + among_controls.users == 1
        null = self._leaks(evidence, compared, numbers, alone, self.top_k)
        return judged(
            self,
            found,
            Compared(
                tested={run: leak for run, leak in found[self.top_k].items() if alone[run]},
                null=null,
                users=tuple(sorted(set(counts.names).difference(*(group.seen for group in groups)))),
                null_users=_null_users(compared, counts, among_controls, groups),
                same_users=not len(among_controls.names),
                in_nats=groups[0].reference is not None and evidence.models[TARGET].access.logprob != "none",
            ),
            counts,
            _reason(evidence, groups),
        )

    def _groups(self, evidence: Evidence) -> list[Group]:
        """The users by the references that have not seen them; no reference where the target shows no probabilities."""
        if evidence.models[TARGET].access.logprob == "none":
            return [Group()]
        return groups_of(evidence, self.folds)

    def _null_asked(self, evidence: Evidence, groups: list[Group]) -> list[Asked]:
        """Where what a model says cannot come from its training: other users, or another model."""
        if CONTROLS in evidence.corpora:
            return [Asked(corpus=CONTROLS, model=TARGET, reference=groups[0].reference)]
        return _nulls(groups)

    def _leaks(
        self,
        evidence: Evidence,
        asked: list[Asked],
        numbers: Numbers,
        unique: np.ndarray[tuple[int], np.dtype[np.bool_]],
        k: int,
    ) -> dict[int, Leak]:
        """The sequences of all groups together; one that is one user's alone is in one group only."""
        found: dict[int, Leak] = {}
        for each in asked:
            found |= leaks(evidence, each, numbers, unique, k=k, least=self.min_length)
        return found


def _targets(groups: list[Group]) -> list[Asked]:
    """What the target says of each group."""
    return [Asked(corpus=each.corpus, model=TARGET, reference=each.reference, seen=each.seen) for each in groups]


def _nulls(groups: list[Group]) -> list[Asked]:
    """What models say of each group that have not seen it."""
    return [
        Asked(corpus=each.corpus, model=each.null, reference=each.reference, seen=each.seen)
        for each in groups
        if each.null is not None
    ]


def _texts(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Whose text each is, and the text."""
    return ((record.owner, record.predicted) for record in corpus)


def _null_users(compared: list[Asked], counts: Counts, controls: Counts, groups: list[Group]) -> tuple[str, ...]:
    """The users with whom the audited ones are compared."""
    if not compared:
        return ()
    return tuple(sorted(controls.names or set(counts.names).difference(*(group.seen for group in groups))))


def _reason(evidence: Evidence, groups: list[Group]) -> str:
    """Why there is no leakage epsilon; empty if there is a reference."""
    if evidence.models[TARGET].access.logprob == "none":
        return f"The model shows {evidence.models[TARGET].access}; a ratio of perplexities needs probabilities."
    if groups[0].reference is None:
        return "No reference is given and none is trained: give --reference MODEL, or --recipe to train some."
    return ""
