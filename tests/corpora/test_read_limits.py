"""Small files that expand without end, and lines that do not end, are refused before they fill the memory."""

from __future__ import annotations

import gzip
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recollect.corpora.readers import kept_records, read_limits
from recollect.corpora.readers.corpus_reader import read_corpus
from recollect.corpora.readers.read_limits import FREE_BYTES, MEGABYTE, ReadLimits
from recollect.pipeline.plans.refs import CorpusRef
from recollect.testing.refusals import refused

LINE = b'{"text": "' + b"a" * (MEGABYTE - 13) + b'"}\n'
LINES = 6


@pytest.fixture(autouse=True)
def little_is_free(monkeypatch):
    """What any file may expand to is four megabytes here: bombs are made and read quickly."""
    assert FREE_BYTES == 100 * MEGABYTE
    monkeypatch.setattr(read_limits, "FREE_BYTES", 4 * MEGABYTE)


def write_bomb(path, compression):
    """A few kilobytes that hold six megabytes."""
    if compression == "gz":
        with gzip.open(path, "wb") as file:
            for _ in range(LINES):
                file.write(LINE)
    else:
        with pa.output_stream(path, compression="zstd") as file:
            for _ in range(LINES):
                file.write(LINE)
    return path


@pytest.mark.parametrize("compression", ["gz", "zst"])
def test_a_compressed_bomb_is_refused_unless_the_limit_is_raised(compression, tmp_path):
    bomb = write_bomb(tmp_path / f"a.jsonl.{compression}", compression)
    with refused("expands_too_far"):
        read_corpus(bomb)
    assert len(CorpusRef(corpus=str(bomb), max_expansion=100_000).read()) == LINES


@pytest.mark.parametrize("ending", ["jsonl", "csv", "txt"])
def test_a_line_that_does_not_end_is_refused_unless_the_limit_is_raised(ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    text = "a" * (3 * MEGABYTE)
    path.write_text({"jsonl": json.dumps({"text": text}), "csv": f"text\n{text}", "txt": text}[ending] + "\n")
    with refused("record_too_long"):
        CorpusRef(corpus=str(path), max_record_mb=2).read()
    assert len(CorpusRef(corpus=str(path), max_record_mb=4).read()) == 1


def test_a_parquet_bomb_is_refused_by_what_it_says_or_by_what_comes_out(tmp_path):
    empty = pa.table({"text": pa.array(["x"] * 200_000)})
    pq.write_table(empty, tmp_path / "rows.parquet", compression="zstd")
    with refused("expands_too_far"):
        read_corpus(tmp_path / "rows.parquet")
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), pa.array(["long " * 20_000]))
    pq.write_table(pa.table({"text": long}), tmp_path / "long.parquet", store_schema=False)
    with refused("expands_too_far"):
        read_corpus(tmp_path / "long.parquet")


def test_an_archive_of_arrays_that_expands_without_end_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((6, MEGABYTE), np.uint8), y=np.zeros(6, np.int64))
    with refused("expands_too_far"):
        read_corpus(tmp_path / "a.npz")


def test_limits_are_positive():
    with refused("out_of_range"):
        ReadLimits(max_record_mb=0)


def test_a_file_that_changes_between_passes_is_noticed_though_size_and_time_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_records, "KEPT_BYTES", 0)  # a larger corpus, which is read anew
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\n{"text": "two"}\n')
    corpus, state = read_corpus(path), path.stat()
    assert len(list(corpus)) == 2
    path.write_text('{"text": "one"}\n{"text": "six"}\n')
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    with refused("file_changed"):
        list(corpus)


def test_a_table_that_changes_between_passes_is_noticed_likewise(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_records, "KEPT_BYTES", 0)  # a larger corpus, which is read anew
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["one", "two"]}), path, compression="none", use_dictionary=False)
    corpus, state = read_corpus(path), path.stat()
    path.write_bytes(path.read_bytes().replace(b"two", b"six"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    with refused("file_changed"):
        list(corpus)


def test_a_file_in_which_every_line_is_bad_is_not_called_empty(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("{\n[1]\nnonsense\n")
    with refused("bad_json_line"):
        read_corpus(path)
    with refused("no_usable_record") as caught:
        read_corpus(path, skip_bad=True)
    assert "not JSON: 2" in caught.error.found


def test_a_good_record_after_many_bad_ones_is_found(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("{\n" * 1500 + '{"text": "here"}\n')
    corpus = read_corpus(path, skip_bad=True)
    assert (len(corpus), corpus.skipped) == (1, {"bad_json_line": 1500})
