"""Which column holds what: the names requested, and the layout that a corpus turns out to have."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace

from recollect.checks import suggest_name
from recollect.corpora.faults import list_names
from recollect.corpora.record import Kind
from recollect.errors import CorpusError, PlanError


class DefaultName(str):
    """A default column name: the column may be absent."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The names of the columns. One that is given must exist; one left at its default may be absent.

    An empty name for user, label or id says that the corpus is to be read without it, whatever columns it has.

    >>> Columns().text, Columns(user="author", id="").given_names
    ('text', ['author'])
    """

    user: str = DefaultName("user")
    text: str = DefaultName("text")
    source: str = DefaultName("source")
    target: str = DefaultName("target")
    label: str = DefaultName("label")
    id: str = DefaultName("id")
    time: str = DefaultName("")
    """When a record was written; read only if it is named, and its values may be null or missing."""

    def __post_init__(self) -> None:
        for name in ("text", "source", "target"):
            if not getattr(self, name):
                raise PlanError(
                    f"The {name} column has no name.", do="Name it, or leave the option out.", code="unnamed_column"
                )

    @property
    def given_names(self) -> list[str]:
        """The names that were given."""
        return [name for field in fields(self) if _is_given(name := getattr(self, field.name))]


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
    time: str | None = None
    """When records were written; values may be null or missing."""
    extra: str | None = None
    """One more column, whose values records carry along; they may be null or missing."""
    integer_labels: bool = False
    """Whether the labels are whole numbers (else they are names)."""
    absent: frozenset[str] = frozenset()
    """Columns that the first records do not have; should one turn up later, the corpus was misread."""

    @property
    def column_names(self) -> frozenset[str]:
        """The columns that are read."""
        given = (self.user, self.id, self.text, self.source, self.target, self.array, self.label, self.time, self.extra)
        return frozenset(name for name in given if name is not None)


def infer_layout(names: Collection[str], columns: Columns, *, location: str) -> Layout:
    """How the columns that exist make up a record.

    A text column that was requested makes texts; a source or target that was requested makes pairs; else a
    corpus with both a source and a target holds pairs, and any other holds texts. Texts with a label column
    are labelled.

    Args:
        names: The columns that exist.
        columns: The columns requested.
        location: The file, for messages.
    """
    for name in columns.given_names:
        if name not in names:
            raise build_missing_column_error(name, names, location)
    pairs = _holds_pairs(names, columns)
    _refuse_contradictions(names, columns, pairs=pairs, location=location)
    user, identity, time = (_get_optional(name, names) for name in (columns.user, columns.id, columns.time))
    if pairs:
        absent = _find_absent((columns.user, columns.id), names)
        pair = Layout(kind="pair", user=user, id=identity, source=columns.source, target=columns.target, absent=absent)
        return replace(pair, time=time)
    label = _get_optional(columns.label, names)
    absent = _find_absent((columns.user, columns.id, columns.label), names)
    kind: Kind = "labelled" if label else "text"
    return Layout(kind=kind, user=user, id=identity, text=columns.text, label=label, time=time, absent=absent)


def infer_array_layout(names: Collection[str], columns: Columns, *, location: str) -> Layout:
    """How the arrays of an archive make up a record: `x` is the input and `y` the label, unless named otherwise.

    Args:
        names: The arrays that exist.
        columns: The columns requested; a text, source or target cannot be among them.
        location: The file, for messages.
    """
    if any(map(_is_given, (columns.text, columns.source, columns.target))):
        raise CorpusError(
            f"{location} holds arrays, not texts.",
            do="Leave the text, source and target columns out.",
            code="not_texts",
        )
    label = columns.label if _is_given(columns.label) else "y"
    for name in [*columns.given_names, "x", label]:
        if name not in names:
            raise build_missing_column_error(name, names, location)
    user, identity, time = (_get_optional(name, names) for name in (columns.user, columns.id, columns.time))
    absent = _find_absent((columns.user, columns.id), names)
    return Layout(kind="labelled", array="x", label=label, user=user, id=identity, time=time, absent=absent)


def _is_given(name: str) -> bool:
    """Whether somebody gave this name."""
    return bool(name) and not isinstance(name, DefaultName)


def _get_optional(name: str, names: Collection[str]) -> str | None:
    """The column, if there is one and it is wanted."""
    return name if name and name in names else None


def _find_absent(wanted: Collection[str], names: Collection[str]) -> frozenset[str]:
    """The wanted columns that do not exist."""
    return frozenset(name for name in wanted if name and name not in names)


def _holds_pairs(names: Collection[str], columns: Columns) -> bool:
    """Whether the records are (source → target) pairs."""
    if _is_given(columns.text):
        return False
    return _is_given(columns.source) or _is_given(columns.target) or {columns.source, columns.target} <= set(names)


def _refuse_contradictions(names: Collection[str], columns: Columns, *, pairs: bool, location: str) -> None:
    """Refuse what no record can be made of."""
    if _is_given(columns.text) and (_is_given(columns.source) or _is_given(columns.target)):
        raise CorpusError(
            f"{location}: columns of texts and of pairs are given at once.",
            do="Name either the text column, or the source and target columns.",
            code="texts_and_pairs",
        )
    if pairs and _is_given(columns.label):
        raise CorpusError(
            f"{location} holds pairs, and a pair has no label.",
            do="Name a text column, or leave the label column out.",
            code="labelled_pairs",
        )
    for name in (columns.source, columns.target) if pairs else ():
        if name not in names:
            raise build_missing_column_error(name, names, location)
    if not pairs and columns.text not in names:
        raise CorpusError(
            f"{location} has neither a column {columns.text!r} nor columns {columns.source!r} and {columns.target!r}.",
            do=f"{suggest_name(columns.text, names)}Name the column with --text-column (columns=Columns(text=…)). "
            f"It has: {list_names(names)}.",
            code="missing_column",
        )


def refuse_duplicate_columns(names: list[str], location: str) -> list[str]:
    """The names of the columns, each of which must occur once."""
    for name in names:
        if names.count(name) > 1:
            raise CorpusError(
                f"{location} has two columns {name!r}.", do="Rename one of them.", code="duplicate_column"
            )
    return names


def build_missing_column_error(name: str, names: Collection[str], location: str) -> CorpusError:
    """The error for a column that does not exist; it names those that do."""
    return CorpusError(
        f"{location} has no column {name!r}.",
        do=f"{suggest_name(name, names)}It has: {list_names(names)}.",
        code="missing_column",
    )
