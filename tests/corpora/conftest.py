"""Files in every format, made by other means than our own."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Rows = Sequence[dict[str, Any]]


def _separated(rows: Rows, delimiter: str) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _parquet(rows: Rows) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


CONTENT: dict[str, Callable[[Rows], bytes]] = {
    "jsonl": lambda rows: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(),
    "csv": lambda rows: _separated(rows, ","),
    "tsv": lambda rows: _separated(rows, "\t"),
    "parquet": _parquet,
    "txt": lambda rows: "".join(row["text"] + "\n" for row in rows).encode(),
}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.fixture(scope="session")
def content() -> Callable[[str, Rows], bytes]:
    """The bytes of a file of that name which holds these rows."""

    def bytes_of(name: str, rows: Rows) -> bytes:
        parts = name.split(".")
        packing = f".{parts.pop()}" if parts[-1] in ("gz", "zst") else ""
        return PACKED[packing](CONTENT[parts[-1]](rows))

    return bytes_of


@pytest.fixture
def write(tmp_path: Path, content: Callable[[str, Rows], bytes]) -> Callable[..., Path]:
    """Writes a file of some rows, or of the bytes given, and says where it is."""

    def written(name: str, what: Rows | bytes | str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, str):
            what = what.encode()
        path.write_bytes(what if isinstance(what, bytes) else content(name, what))
        return path

    return written
