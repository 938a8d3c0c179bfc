"""Which column holds what: the names requested, and the layout that a corpus turns out to have."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace

from recollect.checks import check_one_of, suggest_name
from recollect.corpora.messages import ASSISTANT, ROLES
from recollect.corpora.readers.faults import list_column_names
from recollect.corpora.record import Kind
from recollect.errors import CorpusError, PlanError


class DefaultName(str):
    """A default column name: the column may be absent."""

    __slots__ = ()


CHAT_COLUMNS = ("messages", "conversations")
"""Columns of turns, by their usual names; the second is ShareGPT's."""
PROMPT_COLUMNS = ("prompt", "completion")
"""What instruction data sets call a source and a target."""


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
    messages: str = DefaultName("messages")
    """The turns of a conversation; `conversations`, where there is no such column."""
    scored_roles: tuple[str, ...] = (ASSISTANT,)
    """Whose turns of a conversation are scored and trained on; all others are context."""

    def __post_init__(self) -> None:
        for role in self.scored_roles or ("",):
            check_one_of(ROLES, scored_roles=role)
        for name in ("text", "source", "target", "messages"):
            if not getattr(self, name):
                raise PlanError(
                    f"The {name} column has no name.", do="Name it, or leave the option out.", code="unnamed_column"
                )

    @property
    def given_names(self) -> list[str]:
        """The names that were given."""
        names = (getattr(self, field.name) for field in fields(self) if field.name != "scored_roles")
        return [name for name in names if _is_given_column(name)]


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
    messages: str | None = None
    scored_roles: tuple[str, ...] = (ASSISTANT,)
    """Whose turns of a conversation are scored."""
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
        contents = (self.text, self.source, self.target, self.array, self.label, self.messages)
        given = (self.user, self.id, *contents, self.time, self.extra)
        return frozenset(name for name in given if name is not None)


def infer_layout(names: Collection[str], columns: Columns, *, location: str) -> Layout:
    """How the columns that exist make up a record.

    A content that was requested by the name of its column is what records hold. Else a corpus with both a source and a
    target holds pairs, one with a chat column conversations, one with a prompt and a completion pairs of these, and
    any other holds texts. Texts with a label column are labelled.

    Args:
        names: The columns that exist.
        columns: The columns requested.
        location: The file, for messages.
    """
    for name in columns.given_names:
        if name not in names:
            raise build_missing_column_error(name, names, location)
    kind, columns = _choose_kind_by_columns(names, columns)
    _refuse_contradictory_columns(names, columns, kind=kind, location=location)
    user, identity, time = (_get_optional_column(name, names) for name in (columns.user, columns.id, columns.time))
    if kind != "text":
        absent = _find_absent_columns((columns.user, columns.id), names)
        found = Layout(kind=kind, user=user, id=identity, time=time, absent=absent, scored_roles=columns.scored_roles)
        if kind == "conversation":
            return replace(found, messages=columns.messages)
        return replace(found, source=columns.source, target=columns.target)
    label = _get_optional_column(columns.label, names)
    absent = _find_absent_columns((columns.user, columns.id, columns.label), names)
    kind = "labelled" if label else "text"
    return Layout(kind=kind, user=user, id=identity, text=columns.text, label=label, time=time, absent=absent)


def infer_array_layout(names: Collection[str], columns: Columns, *, location: str) -> Layout:
    """How the arrays of an archive make up a record: `x` is the input and `y` the label, unless named otherwise.

    Args:
        names: The arrays that exist.
        columns: The columns requested; a text, source or target cannot be among them.
        location: The file, for messages.
    """
    if any(map(_is_given_column, (columns.text, columns.source, columns.target, columns.messages))):
        raise CorpusError(
            f"{location} holds arrays, not texts.",
            do="Leave the text, source, target and messages columns out.",
            code="not_texts",
        )
    label = columns.label if _is_given_column(columns.label) else "y"
    for name in [*columns.given_names, "x", label]:
        if name not in names:
            raise build_missing_column_error(name, names, location)
    user, identity, time = (_get_optional_column(name, names) for name in (columns.user, columns.id, columns.time))
    absent = _find_absent_columns((columns.user, columns.id), names)
    return Layout(kind="labelled", array="x", label=label, user=user, id=identity, time=time, absent=absent)


def _is_given_column(name: str) -> bool:
    """Whether somebody gave this name of a column."""
    return bool(name) and not isinstance(name, DefaultName)


def _get_optional_column(name: str, names: Collection[str]) -> str | None:
    """The column, if there is one and it is wanted."""
    return name if name and name in names else None


def _find_absent_columns(wanted: Collection[str], names: Collection[str]) -> frozenset[str]:
    """The wanted columns that do not exist."""
    return frozenset(name for name in wanted if name and name not in names)


def _choose_kind_by_columns(names: Collection[str], columns: Columns) -> tuple[Kind, Columns]:
    """What records hold, and the columns under the names that they have here."""
    if _is_given_column(columns.messages):
        return "conversation", columns
    if _is_given_column(columns.text):
        return "text", columns
    if (
        _is_given_column(columns.source)
        or _is_given_column(columns.target)
        or {columns.source, columns.target} <= set(names)
    ):
        return "pair", columns
    for name in CHAT_COLUMNS:
        if name in names:
            return "conversation", replace(columns, messages=DefaultName(name))
    if set(PROMPT_COLUMNS) <= set(names) and columns.text not in names:
        source, target = map(DefaultName, PROMPT_COLUMNS)
        return "pair", replace(columns, source=source, target=target)
    return "text", columns


def _refuse_contradictory_columns(names: Collection[str], columns: Columns, *, kind: Kind, location: str) -> None:
    """Refuse columns that no record can be made of."""
    pair = _is_given_column(columns.source) or _is_given_column(columns.target)
    if _is_given_column(columns.text) + _is_given_column(columns.messages) + pair > 1:
        raise CorpusError(
            f"{location}: columns of several kinds of records are given at once.",
            do="Name either the text column, or the source and target columns, or the messages column.",
            code="texts_and_pairs",
        )
    if kind != "text" and _is_given_column(columns.label):
        raise CorpusError(
            f"{location} holds {kind}s, and a {kind} has no label.",
            do="Name a text column, or leave the label column out.",
            code="labelled_pairs",
        )
    for name in (columns.source, columns.target) if kind == "pair" else ():
        if name not in names:
            raise build_missing_column_error(name, names, location)
    if kind == "text" and columns.text not in names:
        raise CorpusError(
            f"{location} has neither a column {columns.text!r} nor columns {columns.source!r} and {columns.target!r}, "
            f"{PROMPT_COLUMNS[0]!r} and {PROMPT_COLUMNS[1]!r}, or {columns.messages!r}.",
            do=f"{suggest_name(columns.text, names)}Name the column with --text-column (columns=Columns(text=…)), or "
            f"one of turns with --messages-column. It has: {list_column_names(names)}.",
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
        do=f"{suggest_name(name, names)}It has: {list_column_names(names)}.",
        code="missing_column",
    )
