"""Evidence: models and corpora by role, and the answers of models about corpora."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.members import Members
from recollect.corpora.record import Record
from recollect.errors import RecollectError
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.model import Model
from recollect.signals.roles import AUDITED as AUDITED  # noqa: PLC0414 - roles are part of what this module offers
from recollect.signals.roles import CONTROLS as CONTROLS  # noqa: PLC0414
from recollect.signals.roles import REFERENCE as REFERENCE  # noqa: PLC0414
from recollect.signals.roles import SHADOW as SHADOW  # noqa: PLC0414
from recollect.signals.roles import TARGET as TARGET  # noqa: PLC0414


class EvidenceAnswers(Protocol):
    """Where the answers of one model can be read, such as an `AnswerStore`."""

    @property
    def access(self) -> Access:
        """What the answers in the evidence show."""

    def get_answers(self, records: Iterable[Record]) -> Answers:
        """The answers in the evidence to these records, each content once, in their order."""

    def iter_blocks(self, records: Iterable[Record]) -> Iterator[tuple[list[Record], Answers]]:
        """The records block by block with their answers in the evidence, in bounded memory."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Everything that an audit decides from. Every audit starts with empty evidence.

    Models and corpora are keyed by role: "target", "reference", "shadow-0", "shadow-1" …; "audited", "controls" …
    """

    models: Mapping[str, Model] = field(default_factory=dict)
    corpora: Mapping[str, Corpus] = field(default_factory=dict)
    answers: Mapping[tuple[str, str], EvidenceAnswers] = field(default_factory=dict)
    """What a model (by role) showed about a corpus (by role)."""
    cohorts: Mapping[str, Cohorts] = field(default_factory=dict)
    """Who of a corpus (by role) trained which model, as far as it is known."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Other files that the user gave, by role: "canaries" …"""
    members: Members | None = None
    """Which users or records of the audited corpus are known to be in the target's training set, and which not to."""
    trainable: bool = False
    """Whether there is a recipe by which models that are missing can be trained."""
    seed: int = 0
    """Of the run: for what an audit draws in its `needs`, by streams that it names."""

    @property
    def roles(self) -> frozenset[str]:
        """All roles that a model, a corpus or a file has."""
        return frozenset({*self.models, *self.corpora, *self.files})

    def has_answers(self, model: str, corpus: str) -> bool:
        """Whether this model has scored this corpus."""
        return (model, corpus) in self.answers

    def models_of_role(self, role: str) -> tuple[str, ...]:
        """The models of a role: of that very name, or numbered, in the order of their numbers.

        >>> Evidence(models=dict.fromkeys(["shadow-10", "shadow-9", "target"])).models_of_role("shadow")
        ('shadow-9', 'shadow-10')
        """
        numbered = [name for name in self.models if _parse_role_number(name, role) is not None]
        return tuple(sorted(numbered, key=lambda name: _parse_role_number(name, role) or 0))

    def iter_blocks(self, corpus: str, models: Sequence[str]) -> Iterator[tuple[list[Record], list[Answers]]]:
        """The records of a corpus block by block, with the answers of several models to the same records.

        Answers are joined by record, never by their place.

        Args:
            corpus: The role of the corpus.
            models: The roles of the models; their answers come in this order.

        Raises:
            RecollectError: One of them has not scored this corpus: the audit did not declare that it needs it.
        """
        sources = [self._get_answers(model, corpus) for model in models]
        for records, first in sources[0].iter_blocks(self.corpora[corpus]):
            yield records, [first, *(other.get_answers(records) for other in sources[1:])]

    def _get_answers(self, model: str, corpus: str) -> EvidenceAnswers:
        """The answers of a model about a corpus."""
        if not self.has_answers(model, corpus):
            raise RecollectError(
                f"Model {model!r} has not scored corpus {corpus!r}.",
                do="An audit names all that it needs in `needs`, a signal in `needs` too.",
                code="missing_answers",
            )
        return self.answers[model, corpus]


def _parse_role_number(name: str, role: str) -> int | None:
    """The number in the name of a model of this role in the evidence; None for another role."""
    rest = name.removeprefix(role)
    if name == role:
        return 0
    return int(rest[1:]) if rest != name and rest[0] == "-" and rest[1:].isdecimal() else None
