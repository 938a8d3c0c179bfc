"""Writing a corpus: JSON lines that `read_corpus` reads again with no option."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from recollect.corpora.messages import list_turns
from recollect.corpora.record import Record
from recollect.errors import CorpusError
from recollect.files import write_atomically


def write_corpus(records: Iterable[Record], path: Path) -> None:
    """Write records as `.jsonl` or `.jsonl.gz`, whole or not at all, readable by their owner only.

    Raises:
        CorpusError: The name has another suffix, or a record holds an array.
    """
    check_corpus_name(path)
    compressed = path.name.endswith(".jsonl.gz")
    with write_atomically(path) as temporary, temporary.open("wb") as raw:
        if not compressed:
            _write_corpus_lines(records, raw)
            return
        # no name and no time in the header: the same records give the same bytes
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream:
            _write_corpus_lines(records, stream)


def check_corpus_name(path: Path) -> None:
    """Refuse a name that `write_corpus` would refuse: for whoever works long before they write."""
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise CorpusError(
            f"{path} is not a name for JSON lines.", do="Let it end in .jsonl or .jsonl.gz.", code="bad_file_name"
        )
    if path.is_dir():
        raise CorpusError(f"{path} is a folder.", do="Name a file that ends in .jsonl or .jsonl.gz.", code="not_a_file")


def _write_corpus_lines(records: Iterable[Record], stream: IO[bytes] | gzip.GzipFile) -> None:
    """Write one line of JSON per record."""
    for record in records:
        if record.array is not None:
            raise CorpusError(f"Record {record.id} is an array.", do="Arrays are kept in .npz files.", code="not_texts")
        named = {name: getattr(record, name) for name in ("id", "user", "text", "source", "target", "label")}
        if record.messages is not None:
            named["messages"] = list_turns(record.messages)
        line = json.dumps({name: value for name, value in named.items() if value is not None}, ensure_ascii=False)
        stream.write(line.encode("utf-8", "strict") + b"\n")
