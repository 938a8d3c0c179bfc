"""Tables of a result as rows of words: numbers as people write them, private text masked, not too many rows."""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from recollect.report.figures.columns import read_column
from recollect.report.words import Naming, fit, get_own_id
from recollect.results.presentation import TableView
from recollect.results.result import Mention, Result
from recollect.results.summary_rows import format_number
from recollect.results.text_masks import mask_text

TEXT_COLUMNS = frozenset({"text", "secret", "sequence", "context", "source", "target"})
"""Columns that hold text from corpora, in the tables of every audit."""
ID_COLUMNS: Final[dict[str, Literal["user", "record"]]] = {"user": "user", "record": "record"}
"""Columns that name people or records, likewise."""
MAX_FLOAT = sys.float_info.max
"""What infinity is sorted as: the script of the page knows no "inf"."""
MAX_CELLS, MAX_CHARACTERS, MAX_CELL_CHARACTERS = 5_000, 100_000, 300
"""What is shown of one table, so that a page of many stays small; the file in the run folder has all."""
MAX_TERMINAL_COLUMNS = 4
"""Columns of a table that a terminal shows, where its view declares none."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What is in a cell, and the number by which it is sorted, if it is one."""

    words: str
    number: float | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table as it is shown."""

    name: str
    caption: str
    headings: tuple[str, ...]
    numeric: tuple[bool, ...]
    """Which columns hold numbers."""
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    """How many rows there are, of which the first are shown."""
    left_out: tuple[str, ...]
    """Columns that are not shown."""
    path: str
    """Where all of it is in the run folder."""
    withheld: str = ""
    """Which columns are withheld, and why; empty if none is."""


def build_table(
    name: str,
    table: pa.Table,
    view: TableView | None,
    *,
    path: str,
    show_text: bool,
    naming: Naming = get_own_id,
) -> Table:
    """A table as it is shown.

    Args:
        name: What it is called in the result.
        table: All of it.
        view: Which columns matter; None to show all.
        path: Where it is in the run folder.
        show_text: Whether text from corpora is shown as it is in the table.
        naming: How people and records are called.
    """
    shown = view or TableView(caption=f"Table “{name}”")
    wanted = shown.columns or {column: column.replace("_", " ") for column in table.column_names}
    headings = {column: heading for column, heading in wanted.items() if column in table.column_names}
    most = max(1, MAX_CELLS // max(1, len(headings)))
    first = shown.first if shown.first in table.column_names else None
    head = (table if first is None else _select_highest(table, first, most)).select(list(headings)).slice(0, most)
    columns = [
        [
            _build_cell(value, mask=column in TEXT_COLUMNS and not show_text)
            for value in _rename_people(head.column(column).to_pylist(), ID_COLUMNS.get(column), naming)
        ]
        for column in headings
    ]
    return Table(
        name=name,
        caption=shown.caption,
        headings=tuple(headings.values()),
        numeric=tuple(_is_numeric_table_column(head.schema.field(column).type) for column in headings),
        rows=_limit_table_rows(list(zip(*columns, strict=True))),
        total=table.num_rows,
        left_out=tuple(column for column in table.column_names if column not in headings),
        path=path,
    )


def _select_highest(table: pa.Table, column: str, most: int) -> pa.Table:
    """The first rows of a table to be shown, highest values first; Arrow's own sorting takes longer to load than all.

    >>> _select_highest(pa.table({"p": [0.5, None, 0.9]}), "p", 3).column("p").to_pylist()
    [0.9, 0.5, None]
    """
    if not _is_numeric_table_column(table.schema.field(column).type):
        return table.sort_by([(column, "descending")])
    values = read_column(table, column)
    order = np.lexsort((-values, np.isnan(values)))[:most]
    return pa.concat_tables([table.slice(0, 0), *(table.slice(row, 1) for row in order.tolist())])


def _rename_people(values: list[Any], kind: Literal["user", "record"] | None, naming: Naming) -> list[Any]:
    """The values of a column of a table; ids of people or records as they are called."""
    if kind is None:
        return values
    return [None if value is None else naming(Mention(kind=kind, id=str(value))) for value in values]


def merge_id_columns(result: Result, table: pa.Table) -> pa.Table:
    """The table without a column that repeats the ids of another.

    Where users are audited as a whole, each of them is called its own record; without users, each record its own user.
    An audit that does not say what it audits (a setting `by`) keeps both.

    >>> from recollect.results.result import Result
    >>> by_user = Result(audit="a", question="?", verdict=".", outcome="found", settings={"by": "user"})
    >>> merge_id_columns(by_user, pa.table({"record": ["ann"], "user": ["ann"]})).column_names
    ['user']
    """
    by = result.settings.get("by")
    if by is None or not ID_COLUMNS.keys() <= {*table.column_names}:
        return table
    if table["record"].to_pylist() != table["user"].to_pylist():
        return table
    return table.drop_columns(["record" if by == "user" else "user"])


def narrow_view(name: str, table: pa.Table, view: TableView | None) -> TableView:
    """How the table is shown where there is little room: the columns that are declared for a terminal, or the first.

    >>> narrow_view("people", pa.table({"a": [1], "b": [2], "c": [3], "d": [4], "e": [5]}), None).columns
    {'a': 'a', 'b': 'b', 'c': 'c', 'd': 'd'}
    """
    whole = view or TableView(caption=f"Table “{name}”")
    wanted = whole.columns or {column: column.replace("_", " ") for column in table.column_names}
    names = whole.terminal or [column for column in wanted if column in table.column_names][:MAX_TERMINAL_COLUMNS]
    return replace(whole, columns={column: wanted[column] for column in names if column in wanted})


def _limit_table_rows(rows: list[tuple[Cell, ...]]) -> tuple[tuple[Cell, ...], ...]:
    """The first rows, as many as a page can hold."""
    lengths = itertools.accumulate(sum(len(cell.words) for cell in row) for row in rows)
    return tuple(row for row, length in zip(rows, lengths, strict=True) if length <= MAX_CHARACTERS)


def _is_numeric_table_column(kind: Any) -> bool:
    """Whether a column of a report's table holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _build_cell(value: Any, *, mask: bool) -> Cell:
    """A value as a cell of a table shows it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return Cell(words="–")
    if isinstance(value, bool):
        return Cell(words="yes" if value else "no")
    if isinstance(value, int):
        return Cell(words=f"{value:,}", number=float(value))
    if isinstance(value, float):
        return Cell(
            words=format_number(value) if math.isfinite(value) else str(value),
            number=min(max(value, -MAX_FLOAT), MAX_FLOAT),
        )
    text = str(value)
    return Cell(words=mask_text(text) if mask else fit(text, MAX_CELL_CHARACTERS))
