"""Evidence: models and corpora by the part they play, and what was asked of whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from recollect import labels
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.members import Members
from recollect.corpora.record import Record
from recollect.errors import RecollectError
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.model import Model

TARGET = labels.ROLE_TARGET
"""The part of the model that is audited."""
REFERENCE = labels.ROLE_REFERENCE
"""The part of models that the target is compared with: they have not seen the audited records."""
SHADOW = labels.ROLE_SHADOW
"""The part of models that were trained like the target on known halves of the data."""
AUDITED = labels.ROLE_AUDITED
"""The part of the corpus that is audited."""
CONTROLS = labels.ROLE_CONTROLS
"""The part of the corpus whose records are known not to be in training."""


class AnswerSource(Protocol):
    """Where the answers of one model can be read, such as an `AnswerStore`."""

    @property
    def access(self) -> Access:
        """What the answers show."""

    def get_answers(self, records: Iterable[Record]) -> Answers:
        """The answers to these records, each content once, in their order."""

    def iter_blocks(self, records: Iterable[Record]) -> Iterator[tuple[list[Record], Answers]]:
        """The records block by block with their answers, in bounded memory."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """All that there is to judge by. Empty evidence is where every audit begins.

    Models and corpora go by their parts: "target", "reference", "shadow-0", "shadow-1" …; "audited", "controls" …
    """

    models: Mapping[str, Model] = field(default_factory=dict)
    corpora: Mapping[str, Corpus] = field(default_factory=dict)
    answers: Mapping[tuple[str, str], AnswerSource] = field(default_factory=dict)
    """What a model (by its part) showed about a corpus (by its part)."""
    cohorts: Mapping[str, Cohorts] = field(default_factory=dict)
    """Who of a corpus (by its part) trained which model, as far as it is known."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Other files that the user gave, by their parts: "canaries" …"""
    members: Members | None = None
    """Which users or records of the audited corpus are known to be in the target's training set, and which not to."""
    trainable: bool = False
    """Whether there is a recipe by which models that are missing can be trained."""
    seed: int = 0
    """Of the run: for what an audit draws in its `needs`, by streams that it names."""

    @property
    def roles(self) -> frozenset[str]:
        """All parts that are played, by a model, a corpus or a file."""
        return frozenset({*self.models, *self.corpora, *self.files})

    def has_answers(self, model: str, corpus: str) -> bool:
        """Whether this model has been asked about this corpus."""
        return (model, corpus) in self.answers

    def models_of_role(self, role: str) -> tuple[str, ...]:
        """The models that play a part: of that very name, or numbered, in the order of their numbers.

        >>> Evidence(models=dict.fromkeys(["shadow-10", "shadow-9", "target"])).models_of_role("shadow")
        ('shadow-9', 'shadow-10')
        """
        numbered = [name for name in self.models if _parse_role_number(name, role) is not None]
        return tuple(sorted(numbered, key=lambda name: _parse_role_number(name, role) or 0))

    def iter_blocks(self, corpus: str, models: Sequence[str]) -> Iterator[tuple[list[Record], list[Answers]]]:
        """The records of a corpus block by block, with the answers of several models to the same records.

        Answers are joined by record, never by their place.

        Args:
            corpus: The part of the corpus.
            models: The parts of the models; their answers come in this order.

        Raises:
            RecollectError: One of them was not asked about this corpus: the audit did not say that it needs it.
        """
        sources = [self._get_answers(model, corpus) for model in models]
        for records, first in sources[0].iter_blocks(self.corpora[corpus]):
            yield records, [first, *(other.get_answers(records) for other in sources[1:])]

    def _get_answers(self, model: str, corpus: str) -> AnswerSource:
        """The answers of a model about a corpus."""
        if not self.has_answers(model, corpus):
            raise RecollectError(
                f"Model {model!r} was not asked about corpus {corpus!r}.",
                do="An audit names all that it needs in `needs`, a signal in `needs` too.",
                code="missing_answers",
            )
        return self.answers[model, corpus]


def _parse_role_number(name: str, role: str) -> int | None:
    """The number in the name of a model that plays this part; None if it plays another."""
    rest = name.removeprefix(role)
    if name == role:
        return 0
    return int(rest[1:]) if rest != name and rest[0] == "-" and rest[1:].isdecimal() else None
