"""Which column holds what: the names asked for, and the layout that a corpus turns out to have."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields

from recollect.corpora.faults import named
from recollect.corpora.record import Kind
from recollect.errors import CorpusError, PlanError
from recollect.settings import did_you_mean


class Default(str):
    """A column name that nobody asked for: the column may be absent."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The names of the columns. One that is given must exist; one left at its default may be absent.

    An empty name for user, label or id says that the corpus is to be read without it, whatever columns it has.

    >>> Columns().text, Columns(user="author", id="").asked
    ('text', ['author'])
    """

    user: str = Default("user")
    text: str = Default("text")
    source: str = Default("source")
    target: str = Default("target")
    label: str = Default("label")
    id: str = Default("id")

    def __post_init__(self) -> None:
        for name in ("text", "source", "target"):
            if not getattr(self, name):
                raise PlanError(
                    f"The {name} column has no name.", do="Name it, or leave the option out.", code="unnamed_column"
                )

    @property
    def asked(self) -> list[str]:
        """The names that were given."""
        return [name for field in fields(self) if _asked(name := getattr(self, field.name))]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which columns make up a record of this corpus; None where it has no such column."""

    kind: Kind
    user: str | None = None
    id: str | None = None
    text: str | None = None
    source: str | None = None
    target: str | None = None
    array: str | None = None
    label: str | None = None
    extra: str | None = None
    """One more column, whose values records carry along; they may be null or missing."""
    whole_labels: bool = False
    """Whether the labels are whole numbers (else they are names)."""
    absent: frozenset[str] = frozenset()
    """Columns that the first records do not have; should one turn up later, the corpus was misread."""

    @property
    def used(self) -> frozenset[str]:
        """The columns that are read."""
        given = (self.user, self.id, self.text, self.source, self.target, self.array, self.label, self.extra)
        return frozenset(name for name in given if name is not None)


def layout_of(names: Collection[str], columns: Columns, *, place: str) -> Layout:
    """How the columns that exist make up a record.

    A text column that was asked for makes texts; a source or target that was asked for makes pairs; else a
    corpus with both a source and a target holds pairs, and any other holds texts. Texts with a label column
    are labelled.

    Args:
        names: The columns that exist.
        columns: The columns asked for.
        place: The file, for messages.
    """
    for name in columns.asked:
        if name not in names:
            raise missing_column(name, names, place)
    pairs = _holds_pairs(names, columns)
    _refuse_contradictions(names, columns, pairs=pairs, place=place)
    user, identity = _optional(columns.user, names), _optional(columns.id, names)
    if pairs:
        absent = _absent((columns.user, columns.id), names)
        return Layout(kind="pair", user=user, id=identity, source=columns.source, target=columns.target, absent=absent)
    label = _optional(columns.label, names)
    absent = _absent((columns.user, columns.id, columns.label), names)
    kind: Kind = "labelled" if label else "text"
    return Layout(kind=kind, user=user, id=identity, text=columns.text, label=label, absent=absent)


def array_layout_of(names: Collection[str], columns: Columns, *, place: str) -> Layout:
    """How the arrays of an archive make up a record: `x` is the input and `y` the label, unless named otherwise.

    Args:
        names: The arrays that exist.
        columns: The columns asked for; a text, source or target cannot be among them.
        place: The file, for messages.
    """
    if any(map(_asked, (columns.text, columns.source, columns.target))):
        raise CorpusError(
            f"{place} holds arrays, not texts.", do="Leave the text, source and target columns out.", code="not_texts"
        )
    label = columns.label if _asked(columns.label) else "y"
    for name in [*columns.asked, "x", label]:
        if name not in names:
            raise missing_column(name, names, place)
    user, identity = _optional(columns.user, names), _optional(columns.id, names)
    absent = _absent((columns.user, columns.id), names)
    return Layout(kind="labelled", array="x", label=label, user=user, id=identity, absent=absent)


def _asked(name: str) -> bool:
    """Whether somebody gave this name."""
    return bool(name) and not isinstance(name, Default)


def _optional(name: str, names: Collection[str]) -> str | None:
    """The column, if there is one and it is wanted."""
    return name if name and name in names else None


def _absent(wanted: Collection[str], names: Collection[str]) -> frozenset[str]:
    """The wanted columns that do not exist."""
    return frozenset(name for name in wanted if name and name not in names)


def _holds_pairs(names: Collection[str], columns: Columns) -> bool:
    """Whether the records are (source → target) pairs."""
    if _asked(columns.text):
        return False
    return _asked(columns.source) or _asked(columns.target) or {columns.source, columns.target} <= set(names)


def _refuse_contradictions(names: Collection[str], columns: Columns, *, pairs: bool, place: str) -> None:
    """Refuse what no record can be made of."""
    if _asked(columns.text) and (_asked(columns.source) or _asked(columns.target)):
        raise CorpusError(
            f"{place} was asked for texts and for pairs at once.",
            do="Name either the text column, or the source and target columns.",
            code="texts_and_pairs",
        )
    if pairs and _asked(columns.label):
        raise CorpusError(
            f"{place} holds pairs, and a pair has no label.",
            do="Name a text column, or leave the label column out.",
            code="labelled_pairs",
        )
    for name in (columns.source, columns.target) if pairs else ():
        if name not in names:
            raise missing_column(name, names, place)
    if not pairs and columns.text not in names:
        raise CorpusError(
            f"{place} has neither a column {columns.text!r} nor columns {columns.source!r} and {columns.target!r}.",
            do=f"{did_you_mean(columns.text, names)}Name the column with --text-column (columns=Columns(text=…)). "
            f"It has: {named(names)}.",
            code="missing_column",
        )


def refuse_duplicate_columns(names: list[str], place: str) -> list[str]:
    """The names of the columns, each of which must occur once."""
    for name in names:
        if names.count(name) > 1:
            raise CorpusError(f"{place} has two columns {name!r}.", do="Rename one of them.", code="duplicate_column")
    return names


def missing_column(name: str, names: Collection[str], place: str) -> CorpusError:
    """The error for a column that does not exist; it names those that do."""
    return CorpusError(
        f"{place} has no column {name!r}.",
        do=f"{did_you_mean(name, names)}It has: {named(names)}.",
        code="missing_column",
    )
