from __future__ import annotations

import re
import tempfile
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora import read_corpus, spill
from recollect.corpora.readers import corpus_reader
from recollect.corpora.spill import Spill
from recollect.errors import CorpusError
from recollect.testing.refusals import refused


@pytest.fixture(autouse=True)
def short_runs(monkeypatch):
    """So that a few strings already spill to disk."""
    monkeypatch.setattr(spill, "RUN_LENGTH", 8)
    monkeypatch.setattr(spill, "SLICE_LENGTH", 16)
    monkeypatch.setattr(corpus_reader, "IDS_PER_PASS", 5)


def of(strings: list[str]) -> Spill:
    spilled = Spill()
    for string in strings:
        spilled.add(string)
    return spilled


@settings(deadline=None)
@given(strings=st.lists(st.integers(0, 60).map(str), max_size=120))
def test_distinct_and_repeated_strings_equal_a_plain_count(strings):
    counts, spilled = Counter(strings), of(strings)
    for _ in range(2):  # asking does not use it up
        assert spilled.count_distinct() == len(counts)
        repeated = [number for hashes in spilled.iter_repeated() for number in hashes.tolist()]
        expected = {int.from_bytes(spill.hash64(text), "little") for text, n in counts.items() if n > 1}
        assert len(repeated) == len(set(repeated))
        assert set(repeated) == expected


def test_one_string_very_often_is_written_twice_a_run_at_most():
    spilled = of(["same"] * 1000)
    assert spilled.count_distinct() == 1
    assert sum(spilled._lengths) <= 2 * 1000 / 8


def test_a_full_disk_is_a_clear_error(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with refused("no_temporary_space", CorpusError):
        of([str(i) for i in range(20)])


def slow_twin(ids: list[str]) -> list[int]:
    """Which lines (from 1) hold an id for the first time."""
    return [i for i, name in enumerate(ids, 1) if name not in ids[: i - 1]]


@settings(deadline=None, max_examples=60)
@given(ids=st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), min_size=1, max_size=60))
def test_of_records_with_one_id_the_first_is_kept(tmp_path_factory, ids):
    path = tmp_path_factory.mktemp("ids") / "a.jsonl"
    path.write_text("".join(f'{{"text": "{i}", "id": "{name}"}}\n' for i, name in enumerate(ids, 1)))
    corpus = read_corpus(path, skip_bad=True)
    kept = slow_twin(ids)
    assert [int(record.text) for record in corpus] == kept
    assert corpus.skipped.get("duplicate_id", 0) == len(ids) - len(kept)
    if len(kept) < len(ids):
        with refused("duplicate_id", CorpusError):
            read_corpus(path)


def test_different_ids_that_share_a_hash_are_no_duplicates(write, monkeypatch):
    monkeypatch.setattr(spill, "hash64", lambda text: bytes(8))
    rows = [{"text": "x", "id": name} for name in ("a", "b", "c")]
    assert len(read_corpus(write("a.jsonl", rows))) == 3
    corpus = read_corpus(write("b.jsonl", [*rows, rows[1]]), skip_bad=True)
    assert ([r.id for r in corpus], corpus.skipped) == (["a", "b", "c"], {"duplicate_id": 1})


def test_the_first_repeat_is_the_one_that_is_named(write):
    rows = [{"text": "x", "id": name} for name in ("a", "b", "c", "b", "a")]
    with refused("duplicate_id", CorpusError) as refusal:
        read_corpus(write("a.jsonl", rows))
    assert re.search("line 4: .*'b'.*line 2", refusal.error.found)
