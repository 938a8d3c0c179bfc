"""Memory does not grow with the corpus."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recollect.corpora import Corpus, Record, Split, assign_artificial_users, corpus, read_corpus, spill
from recollect.corpora.readers import arrays, arrow_rows, byte_streams, kept_records
from recollect.corpora.synthetic import make_texts


def peak(work: Callable[[], object]) -> int:
    """The most memory that Python and NumPy held while working."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _jsonl(path: Path, count: int) -> Path:
    rows = ({"id": f"r{i}", "user": f"user{i % 500}", "text": f"This is text {i}. It is short."} for i in range(count))
    with gzip.open(path.with_suffix(".jsonl.gz"), "wt", compresslevel=1) as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    return path.with_suffix(".jsonl.gz")


def _csv(path: Path, count: int) -> Path:
    path.with_suffix(".csv").write_text("text,user\n" + "".join(f'"text, {i}",u{i % 99}\n' for i in range(count)))
    return path.with_suffix(".csv")


def _parquet(path: Path, count: int) -> Path:
    table = pa.table({"text": [f"text {i}" for i in range(count)], "user": [f"u{i % 99}" for i in range(count)]})
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=count, data_page_size=1024, use_dictionary=False)
    return path.with_suffix(".parquet")


def _npz(path: Path, count: int) -> Path:
    x = np.random.default_rng(0).integers(0, 255, (count, 50), dtype=np.uint8)
    np.savez_compressed(path.with_suffix(".npz"), x=x, y=np.zeros(count, np.uint8))
    return path.with_suffix(".npz")


def _frame(path: Path, count: int) -> pd.DataFrame:
    return pd.DataFrame({"text": [f"text {i}" for i in range(count)], "user": [i % 99 for i in range(count)]})


@pytest.mark.parametrize("make", [_jsonl, _csv, _parquet, _npz, _frame])
def test_ten_times_the_records_take_no_more_memory(tmp_path, monkeypatch, make):
    # the buffers are filled by the smaller corpus already; only what grows with the corpus can differ
    monkeypatch.setattr(spill, "RUN_LENGTH", 256)
    monkeypatch.setattr(spill, "SLICE_LENGTH", 512)
    monkeypatch.setattr(corpus, "RECENT_USERS", 256)
    monkeypatch.setattr(byte_streams, "BUFFER_BYTES", 1 << 12)
    monkeypatch.setattr(arrays, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(arrow_rows, "ROWS_PER_BATCH", 64)
    monkeypatch.setattr(kept_records, "KEPT_BYTES", 1 << 12)

    def work(source: Path | pd.DataFrame) -> None:
        corpus = read_corpus(source)
        for batch in corpus.iter_batches(64):
            del batch

    small, large = make(tmp_path / "small", 1_000), make(tmp_path / "large", 10_000)
    work(small)  # imports and caches are not the corpus
    # holding as little as 16 bytes of each record would show
    assert peak(lambda: work(large)) < peak(lambda: work(small)) + 16 * 9_000


def test_users_are_counted_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(spill, "RUN_LENGTH", 256)
    monkeypatch.setattr(spill, "SLICE_LENGTH", 512)
    monkeypatch.setattr(corpus, "RECENT_USERS", 256)

    def count(users: int) -> None:
        assert corpus.summarise_corpus(Record(id=str(i), user=str(i), text="x") for i in range(users)).users == users

    count(10)
    assert peak(lambda: count(10_000)) < peak(lambda: count(1_000)) + 4 * 9_000


def test_pieces_and_artificial_users_are_made_as_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_records, "KEPT_BYTES", 1 << 12)
    path = tmp_path / "a.txt"
    path.write_text("One sentence. And another one.\n" * 5_000)

    def work() -> None:
        corpus = read_corpus(path, split=Split())
        assert len(corpus) == 10_000
        assert assign_artificial_users(corpus, users=10, seed=0).summary.users == 10

    assert peak(work) < 1_500_000, "ten thousand records would take some five million bytes"


def test_an_open_corpus_holds_no_records():
    assert peak(lambda: Corpus("endless", make_texts(people=10**9).open)) < 100_000
