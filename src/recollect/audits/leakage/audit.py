"""The leakage audit: what comes out at the press of TAB, and whose is it?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.desk import BARE_DESK, Desk
from recollect.audits.leakage.comparing import Asked, Comparison, Judges
from recollect.audits.leakage.counting import counted
from recollect.audits.leakage.findings import judged
from recollect.audits.leakage.leaving import LEFT_OUT, RETRAINED, Leaving, left_out
from recollect.audits.leakage.measuring import Leak, Numbers, collect, leaks
from recollect.audits.leakage.null import Compared, needed
from recollect.audits.leakage.references import compared_by
from recollect.audits.leakage.verdict import Told
from recollect.audits.leakage.view import PRESENTATION, VERB
from recollect.audits.verb import Verb
from recollect.corpora.corpus import Corpus
from recollect.errors import PlanError
from recollect.models.access import Access
from recollect.results.presentation import Presentation
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
    folds: int = 8
    """Where a recipe and no reference is given, the recipe trains references: without the users of the sequences if
    those are few (`removable`), else so many, each without two of so many folds of the users. 0 to train none. Without
    any reference there is no leakage epsilon."""
    removable: float = 0.1
    """Up to which share of the users the recipe trains one reference without all users of sequences; 0 for folds."""
    deniable_at: float = 1.0
    """Up to which epsilon a user can plausibly deny: the model need not have seen them to say what it says."""
    alpha: float = 0.05
    """How often a model that saw nobody may be called one that gives away users; also the share of false flags."""
    show_text: bool = False
    """Whether the tables show what the sequences say."""

    name: ClassVar[str] = "leakage"
    question: ClassVar[str] = "Which sequences of which user come out of the model, and whose could they be?"
    paper: ClassVar[str] = "Inan et al. 2021, Training Data Leakage Analysis in Language Models"
    verb: ClassVar[Verb] = VERB
    presentation: ClassVar[Presentation] = PRESENTATION

    def __post_init__(self) -> None:
        at_least(1, top_k=self.top_k, min_length=self.min_length)
        at_least(0, folds=self.folds, deniable_at=self.deniable_at)
        between(0, 1, alpha=self.alpha)
        if not 0 <= self.removable <= 0.5:
            raise PlanError(f"removable is {self.removable}.", do="Give a share of the users between 0 and 0.5.")
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
        """The target asked about everybody; then references, about those whom they have not seen."""
        given, trains = frozenset({TARGET, AUDITED}), self._trains(evidence)
        promised = Needs(
            access={
                TARGET: Access.top(self.top_k),
                REFERENCE: Access(k=1, logprob="any", distribution=False, steps=False),
            },
            given=given,
            fleet={LEFT_OUT: self.folds} if trains else {},
            later=_LATER if trains else "",
        )
        if not given <= evidence.parts:
            return promised
        if (kind := evidence.models[TARGET].kind) not in KINDS:
            raise PlanError(
                f"Leakage follows a text from left to right; the target is a {kind} model.",
                do="Give a causal or sequence-to-sequence model; the membership audit takes others.",
            )
        if not self._lacks_references(evidence):
            comparison = self._comparison(evidence)
            asked = [each for each in (comparison.target, comparison.null) if each is not None]
            return replace(promised, ask=frozenset({(TARGET, AUDITED)}).union(*(each.sources for each in asked)))
        if not evidence.has_asked(TARGET, AUDITED):
            return replace(promised, ask=frozenset({(TARGET, AUDITED)}))
        how = Leaving(folds=self.folds, removable=self.removable, needed=needed(self.alpha))
        left = left_out(evidence, self._owners(evidence), how)
        return replace(promised, corpora=left.corpora, train={AUDITED: left.cohorts})

    def run(self, evidence: Evidence, rng: np.random.Generator, desk: Desk = BARE_DESK) -> Result:
        """The sequences, the users they belong to, and whether the model's training on them explains it."""
        comparison = self._comparison(evidence)
        target, null = comparison.target, comparison.null
        desk.progress("reading what the model says", 0, 3)
        numbers: Numbers = {}
        read = collect(evidence, target, numbers, self.steps, self.min_length)
        heard = None if null is None else collect(evidence, null, numbers, [self.top_k], self.min_length)
        desk.progress("counting whose words they are", 1, 3)
        names = list(numbers)
        counts = counted(names, _texts(evidence.corpora[AUDITED]))
        among_controls = counted(names, _texts(evidence.corpora.get(CONTROLS, Corpus.of([]))))
        desk.progress("comparing with references", 2, 3)
        alone = counts.users + among_controls.users == 1
        found = dict.fromkeys(self.steps, _NOTHING) | leaks(evidence, target, read, names, counts.users == 1)
        chance = {} if null is None or heard is None else leaks(evidence, null, heard, names, alone)
        return judged(
            self,
            found,
            Compared(
                tested={run: leak for run, leak in found[self.top_k].items() if alone[run]},
                null=chance.get(self.top_k, _NOTHING),
                users=tuple(sorted(set(counts.names) - comparison.seen)),
                null_users=null.users(evidence) if null else (),
                fold=null.place if null and null.corpus == AUDITED else None,
                in_nats=bool(comparison.way) and evidence.models[TARGET].access.logprob != "none",
            ),
            counts,
            Told(
                read=read,
                way=comparison.way,
                reason=_reason(evidence, comparison),
                by_record=not evidence.corpora[AUDITED].summary.users,
            ),
        )

    def _trains(self, evidence: Evidence) -> bool:
        """Whether references are trained: there is a recipe for them, and none is given."""
        return evidence.trainable and bool(self.folds) and not evidence.playing(REFERENCE)

    def _lacks_references(self, evidence: Evidence) -> bool:
        """Whether references are to be trained and are not there yet."""
        there = any(evidence.playing(part) for part in (RETRAINED, LEFT_OUT))
        return self._trains(evidence) and not there and evidence.models[TARGET].access.logprob != "none"

    def _comparison(self, evidence: Evidence) -> Comparison:
        """Who is compared with whom; with nobody where the target shows no probabilities."""
        if evidence.models[TARGET].access.logprob == "none":
            return compared_by(replace(evidence, models={TARGET: evidence.models[TARGET]}))
        return compared_by(evidence)

    def _owners(self, evidence: Evidence) -> frozenset[str]:
        """The users of sequences that are theirs alone and that the target says."""
        numbers: Numbers = {}
        collect(evidence, _everybody(), numbers, [self.top_k], self.min_length)
        counts = counted(list(numbers), _texts(evidence.corpora[AUDITED]))
        return frozenset(counts.names[owner] for owner in np.unique(counts.owner[counts.users == 1]))


_NOTHING: dict[int, Leak] = {}
_LATER = (
    "Whom a reference must not have seen is known only after the target was asked: a reference and a null model "
    "without the users of its sequences if those are few, else as many models as there are folds."
)


def _everybody() -> Asked:
    """What the target says of everybody, compared with nobody."""
    return Asked(corpus=AUDITED, judges=(Judges(speaker=(TARGET, AUDITED)),))


def _texts(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Whose text each is, and the text."""
    return ((record.owner, record.predicted) for record in corpus)


def _reason(evidence: Evidence, comparison: Comparison) -> str:
    """Why there is no leakage epsilon; empty if there is a reference."""
    if evidence.models[TARGET].access.logprob == "none":
        return f"The model shows {evidence.models[TARGET].access}; a ratio of perplexities needs probabilities."
    if not comparison.way:
        return "No reference is given and none is trained: give --reference MODEL, or --recipe to train some."
    return ""
