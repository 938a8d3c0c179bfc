"""`.parquet`: columns by name, read a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recollect.corpora.columns import refuse_duplicate_columns
from recollect.corpora.faults import Fault
from recollect.corpora.readers import arrow_rows
from recollect.corpora.readers.arrow_rows import iter_batch_rows
from recollect.corpora.readers.byte_streams import build_damaged_error, open_seekable
from recollect.corpora.shards import Shard


def read_columns(shard: Shard) -> list[str]:
    """The columns of the table."""
    with _open_table(shard) as table:
        return refuse_duplicate_columns(table.schema_arrow.names, shard.path)


def iter_rows(shard: Shard, wanted: frozenset[str]) -> Iterator[tuple[int, dict[str, Any] | Fault]]:
    """The rows of the table, numbered from 1; only the columns that are wanted."""
    with _open_table(shard) as table:
        columns = [name for name in table.schema_arrow.names if name in wanted]
        yield from iter_batch_rows(
            table.iter_batches(batch_size=arrow_rows.ROWS_PER_BATCH, columns=columns, use_threads=False)
        )


@contextmanager
def _open_table(shard: Shard) -> Iterator[Any]:
    """The open table; small buffers, so that a row group of any size is read piece by piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_seekable(shard) as file:
        try:
            yield pq.ParquetFile(file, buffer_size=1 << 16, pre_buffer=False, page_checksum_verification=True)
        except (pa.ArrowException, ValueError) as error:
            raise build_damaged_error(shard, error) from error
