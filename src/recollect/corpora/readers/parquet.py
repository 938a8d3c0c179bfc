"""`.parquet`: columns by name, read a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from recollect.corpora.readers import arrow_rows
from recollect.corpora.readers.arrow_rows import iter_batch_rows
from recollect.corpora.readers.byte_streams import build_damaged_stream_error, open_seekable
from recollect.corpora.readers.columns import refuse_duplicate_columns
from recollect.corpora.readers.corpus_shards import Shard
from recollect.corpora.readers.faults import Fault
from recollect.corpora.readers.read_limits import ROW_BYTES


def read_columns(shard: Shard) -> list[str]:
    """The columns of a Parquet file."""
    with _open_parquet(shard) as table:
        return refuse_duplicate_columns(table.schema_arrow.names, shard.path)


def iter_rows(shard: Shard, wanted: frozenset[str]) -> Iterator[tuple[int, dict[str, Any] | Fault]]:
    """The rows of a Parquet file, numbered from 1; only the columns that are wanted."""
    with _open_parquet(shard) as table:
        columns = [name for name in table.schema_arrow.names if name in wanted]
        batches = table.iter_batches(batch_size=arrow_rows.ROWS_PER_BATCH, columns=columns, use_threads=False)
        yield from iter_batch_rows(_limit_batches(batches, shard))


def _limit_batches(batches: Iterable[Any], shard: Shard) -> Iterator[Any]:
    """The batches of a Parquet file, as long as it does not expand without end: a repeated value is written once."""
    allowed = _get_allowed_bytes(shard)
    for batch in batches:
        allowed -= batch.nbytes + ROW_BYTES * batch.num_rows
        if allowed < 0:
            raise shard.limits.build_expansion_error(shard.path)
        if batch.nbytes > shard.limits.record_bytes and batch.num_rows:
            _refuse_long_rows(batch, shard)
        yield batch


def _refuse_long_rows(batch: Any, shard: Shard) -> None:
    """Refuse a batch of a Parquet file with a row that is longer than a record may be."""
    if any(batch.slice(i, 1).nbytes > shard.limits.record_bytes for i in range(batch.num_rows)):
        raise shard.limits.build_long_record_error(f"A row of {shard.path}")


def _get_allowed_bytes(shard: Shard) -> int:
    """What a Parquet file may expand to; a packed file is as large as what it unpacks to, which has its own limit."""
    size = shard.size * (shard.limits.max_expansion if shard.compression else 1)
    return shard.limits.get_expanded_bytes(size)


def _refuse_parquet_bomb(table: Any, shard: Shard) -> None:
    """Refuse a Parquet file that says of itself that it expands without end."""
    groups = [table.metadata.row_group(i) for i in range(table.metadata.num_row_groups)]
    claimed = max(sum(group.total_byte_size for group in groups), ROW_BYTES * table.metadata.num_rows)
    if claimed > _get_allowed_bytes(shard):
        raise shard.limits.build_expansion_error(shard.path)


@contextmanager
def _open_parquet(shard: Shard) -> Iterator[Any]:
    """The open Parquet file; small buffers, so that a row group of any size is read piece by piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_seekable(shard) as file:
        try:
            table = pq.ParquetFile(file, buffer_size=1 << 16, pre_buffer=False, page_checksum_verification=True)
            _refuse_parquet_bomb(table, shard)
            yield table
        except (pa.ArrowException, ValueError) as error:
            raise build_damaged_stream_error(shard, error) from error
