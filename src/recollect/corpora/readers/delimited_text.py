"""`.csv` and `.tsv`: a header, then one record a row."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recollect.corpora.readers.byte_streams import build_utf8_fault, iter_lines, open_shard
from recollect.corpora.readers.columns import refuse_duplicate_columns
from recollect.corpora.readers.corpus_shards import Shard
from recollect.corpora.readers.faults import SKIP_ADVICE, Fault

FIELD_LIMIT = 1 << 24
"""Characters in one cell; a longer one is taken for a quote that was never closed."""
_DIALECTS: dict[str, dict[str, Any]] = {
    "csv": {"delimiter": ","},
    "tsv": {"delimiter": "\t"},
    "tsv-plain": {"delimiter": "\t", "quoting": csv.QUOTE_NONE},
}


def read_columns(shard: Shard) -> list[str]:
    """The columns of a delimited text (CSV or TSV) file, from its header."""
    with _open_delimited(shard) as table:
        return table.header


def iter_rows(shard: Shard) -> Iterator[tuple[int, dict[str, str] | Fault]]:
    """The rows of a CSV or TSV file, each with the number of its first line; blank lines hold no record."""
    with _open_delimited(shard) as table:
        for number, cells in table.iter_cells():
            if isinstance(cells, Fault):
                yield number, cells
            elif len(cells) != len(table.header):
                yield number, _build_ragged_fault(len(cells), len(table.header))
            else:
                yield number, dict(zip(table.header, cells, strict=True))


@contextmanager
def _open_delimited(shard: Shard) -> Iterator[_DelimitedTable]:
    """The open CSV or TSV file behind its header."""
    with open_shard(shard) as stream:
        yield _DelimitedTable(shard, iter_lines(stream, shard))


class _DelimitedTable:
    """The cells of a file, and the lines in which something was wrong."""

    def __init__(self, shard: Shard, numbered: Iterator[tuple[int, bytes]]) -> None:
        self._wrong: dict[int, UnicodeDecodeError] = {}
        self._numbered = numbered
        # The module's only limit is one for the whole process; its default of 131,072 is less than a long letter.
        csv.field_size_limit(max(FIELD_LIMIT, csv.field_size_limit()))
        self._reader = csv.reader(self._iter_decoded_lines(), strict=True, **_DIALECTS[shard.format])
        self.header = self._read_header(shard)

    def _iter_decoded_lines(self) -> Iterator[str]:
        """The lines as text; the bad ones are noted, and no row made of them is handed on."""
        for number, raw in self._numbered:
            try:
                yield raw.decode()
            except UnicodeDecodeError as error:
                self._wrong[number] = error
                yield raw.decode("utf-8", "surrogateescape")

    def _read_header(self, shard: Shard) -> list[str]:
        """The names of the columns, each once."""
        for number, header in self.iter_cells():
            if isinstance(header, Fault):
                raise header.to_error(f"{shard.path}, line {number}")
            return refuse_duplicate_columns(header, shard.path)
        return []

    def iter_cells(self) -> Iterator[tuple[int, list[str] | Fault]]:
        """The cells of each row that follows, or its fault, with the number of the row's first line."""
        while True:
            number = self._reader.line_num + 1
            try:
                cells: list[str] | Fault = next(self._reader)
            except StopIteration:
                return
            except csv.Error as error:
                cells = Fault("bad_csv_row", f"the row cannot be parsed: {error}.", do=_QUOTES_ADVICE)
            if self._wrong:
                cells = build_utf8_fault(self._wrong[min(self._wrong)])
                self._wrong.clear()
            if cells:
                yield number, cells


_QUOTES_ADVICE = (
    "A quote inside a quoted cell is written twice. For a table in which quotes are ordinary characters say "
    "--file-format tsv-plain. " + SKIP_ADVICE
)


def _build_ragged_fault(found: int, wanted: int) -> Fault:
    """The fault of a row of a delimited text (CSV or TSV) file that is longer or shorter than the header."""
    return Fault(
        "ragged_row",
        f"the row has {found} cell{'s' * (found != 1)}, the header has {wanted}.",
        do="Put cells that hold the separator or a line break in quotes. " + SKIP_ADVICE,
    )
