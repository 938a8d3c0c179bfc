"""Objects in memory give the corpus that a file of the same content gives."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from recollect.corpora import Columns, Corpus, Record, Split, read_corpus
from recollect.errors import CorpusError, PlanError
from recollect.testing.refusals import refused

Rows = list[dict[str, Any]]
TEXTS: Rows = [
    {"user": "ann", "text": "Hello, world", "id": "a", "other": [1]},
    {"user": "bob", "text": 'He said "no"\tand\nleft', "id": "b", "other": []},
    {"user": "ann", "text": "Привет 世界 😀", "id": "c", "other": [2, 3]},
]
CONTENTS: dict[str, Rows] = {
    "texts": TEXTS,
    "texts without ids": [{"user": row["user"], "text": row["text"]} for row in TEXTS],
    "texts alone": [{"text": row["text"]} for row in TEXTS],
    "pairs": [{"source": "a b", "target": "c", "user": 7}, {"source": "d", "target": "e f", "user": 8}],
    "whole labels": [{"text": "good", "label": 1, "id": 10}, {"text": "bad", "label": 0, "id": 11}],
    "truth values as labels": [{"text": "good", "label": True}, {"text": "bad", "label": False}],
    "named labels": [{"text": "good", "label": "pos"}, {"text": "bad", "label": "7"}],
    "fractions as users": [{"text": "good", "user": 1.5}, {"text": "bad", "user": 2.0}],
}


def chunked(rows: Rows) -> pa.Table:
    """A table whose chunks end elsewhere than the batches that are read."""
    whole = pa.Table.from_pylist(rows)
    return pa.concat_tables([whole.slice(0, 1), whole.slice(1)])


def picked(rows: Rows) -> datasets.Dataset:
    """A data set whose rows are in another order than its table's."""
    return datasets.Dataset.from_list(rows[::-1]).select(range(len(rows) - 1, -1, -1))


OBJECTS: dict[str, Callable[[Rows], Any]] = {
    "list": list,
    "tuple": tuple,
    "pandas": pd.DataFrame,
    "pandas of objects": lambda rows: pd.DataFrame(rows, dtype=object),
    "pandas of arrow": lambda rows: pd.DataFrame(rows).convert_dtypes(dtype_backend="pyarrow"),
    "pandas with another index": lambda rows: pd.DataFrame(rows, index=pd.Index([9] * len(rows), name="id")),
    "polars": pl.DataFrame,
    "pyarrow": chunked,
    "stream of pyarrow": lambda rows: chunked(rows).to_reader(),
    "datasets": datasets.Dataset.from_list,
    "datasets that were selected from": picked,
    "datasets in another format": lambda rows: datasets.Dataset.from_list(rows).with_format("numpy"),
}


def plain(corpus: Corpus) -> list[tuple[object, ...]]:
    return [(r.id, r.user, r.text, r.source, r.target, r.label, type(r.label), r.digest) for r in corpus]


@pytest.mark.parametrize("rows", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS)
def test_an_object_gives_the_corpus_of_its_twin_among_files(write, make, rows):
    corpus = read_corpus(make(rows))
    for name in ("twin.jsonl", "twin.parquet"):
        twin = read_corpus(write(name, rows))
        assert plain(corpus) == plain(twin)
        assert corpus.summary == twin.summary
    assert all(type(value) is str for r in corpus for value in (r.id, r.user, r.text) if value is not None)
    assert list(corpus) == list(corpus), "it can be read again and again"


def test_a_list_of_texts_is_a_corpus_of_texts(write):
    corpus = read_corpus(["one", "two"])
    assert corpus.summary == read_corpus(write("a.txt", "one\ntwo\n")).summary
    assert corpus.digest == read_corpus(write("a.jsonl", [{"text": "one"}, {"text": "two"}])).digest


def test_a_folder_that_save_to_disk_wrote_is_a_corpus(write, tmp_path):
    data = datasets.Dataset.from_list(TEXTS)
    data.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"only": data}).save_to_disk(tmp_path / "dict")
    datasets.DatasetDict({"train": data, "test": data}).save_to_disk(tmp_path / "several")
    expected = read_corpus(write("twin.jsonl", TEXTS))
    for source in (tmp_path / "one", str(tmp_path / "dict"), f"hf:{tmp_path / 'several'}:test"):
        corpus = read_corpus(source)
        assert plain(corpus) == plain(expected)
        assert (corpus.digest, corpus.name) == (expected.digest, str(source))
    with refused("missing_split", CorpusError) as refusal:
        read_corpus(tmp_path / "several")
    assert f"hf:{tmp_path / 'several'}:SPLIT" in refusal.error.do


def test_a_folder_of_shards_beside_a_state_file_is_no_saved_data_set(write, tmp_path):
    write("many/a.jsonl", TEXTS)
    write("many/state.json", b"{}")
    assert [record.id for record in read_corpus(tmp_path / "many")] == ["a", "b", "c"]


NULLS: Rows = [{"text": "x", "user": "ann"}, {"text": None, "user": "ann"}, {"text": "z", "user": None}]


@pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS)
def test_nulls_are_treated_as_in_files(write, make):
    twin = read_corpus(write("twin.parquet", NULLS), skip_bad=True)
    corpus = read_corpus(make(NULLS), skip_bad=True)
    assert (plain(corpus), corpus.skipped) == (plain(twin), twin.skipped)
    with refused("no_text", CorpusError) as refusal:
        read_corpus(make(NULLS))
    assert refusal.error.found.startswith(f"{corpus.name}, row 2: ")


@pytest.mark.parametrize("null", [None, float("nan"), np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT")])
def test_every_kind_of_null_is_one(null):
    for make in (list, lambda rows: pd.DataFrame(rows, dtype=object)):
        for column, code in (("text", "no_text"), ("user", "no_user"), ("id", "no_id")):
            rows = [{"text": "x", "user": "ann", "id": "1"}, {"text": "y", "user": "bob", "id": "2", column: null}]
            assert read_corpus(make(rows), skip_bad=True).skipped == {code: 1}


class Name(StrEnum):
    """A string that is not only one."""

    ANN = "ann"


def test_numpy_scalars_and_kinds_of_strings_become_plain_values():
    rows = [{"text": np.str_("x"), "user": Name.ANN, "id": np.int64(3), "label": np.int8(1)}]
    (record,) = read_corpus(rows)
    assert record == Record(id="3", user="ann", text="x", label=1)
    assert [type(value) for value in (record.text, record.user, record.label)] == [str, str, int]
    for when in (np.datetime64("2020-01-01", "ns"), np.timedelta64(1, "ns"), pd.Timestamp("2020-01-01")):
        with refused("wrong_type", CorpusError):
            read_corpus([{"text": "x", "user": when}])


def test_ids_and_users_of_a_column_of_mixed_types_are_read_one_by_one():
    frame = pd.DataFrame({"text": ["x", "y", "z"], "user": [1, "ann", 2.5], "id": [1, 2, "three"]}, dtype=object)
    assert [(r.id, r.user) for r in read_corpus(frame)] == [("1", "1"), ("2", "ann"), ("three", "2.5")]


def test_rows_that_are_neither_texts_nor_mappings_are_faults():
    assert read_corpus([None, {"text": "x"}, "y", 3], skip_bad=True).skipped == {"not_an_object": 3}
    assert read_corpus([None, "x", {"text": "y"}, 3, ""], skip_bad=True).skipped == {"no_text": 2, "wrong_type": 2}
    with refused("not_utf8", CorpusError):
        read_corpus(["x", "half a \ud83d pair"])
    with refused("duplicate_id", CorpusError):
        read_corpus([{"text": "x", "id": 1}, {"text": "y", "id": "1"}])


def test_columns_splits_and_small_batches_work_as_with_files(write, monkeypatch):
    monkeypatch.setattr("recollect.corpora.readers.arrow_rows.ROWS_PER_BATCH", 2)
    options = {"columns": Columns(text="text", user="other_user", id=""), "split": Split(by="windows", words=1)}
    rows = [{"source": "s", "target": "t", "text": f"one two {i}", "other_user": i} for i in range(5)]
    twin = read_corpus(write("twin.jsonl", rows), **options)
    for make in OBJECTS.values():
        assert plain(read_corpus(make(rows), **options)) == plain(twin)
    assert [r.id for r in twin][:4] == ["1#1", "1#2", "1#3", "2#1"]


def test_columns_without_a_name_of_letters_are_known_by_their_digits():
    frame = pd.DataFrame([["x", "ann"], ["y", "bob"]])
    assert [(r.text, r.user) for r in read_corpus(frame, columns=Columns(text="0", user="1"))] == [
        ("x", "ann"),
        ("y", "bob"),
    ]
    for twice in (pd.DataFrame([["x", "y"]], columns=["text", "text"]), pa.table([["x"], ["y"]], names=["text"] * 2)):
        with refused("duplicate_column", CorpusError):
            read_corpus(twice)
    with refused("missing_column", CorpusError):
        read_corpus(pd.DataFrame({"body": ["x"]}))


def test_a_corpus_in_memory_is_named_after_its_type_and_size():
    names = {type(made).__name__: read_corpus(made).name for made in (make(TEXTS) for make in OBJECTS.values())}
    kinds = ("list", "tuple", "DataFrame", "Table", "Dataset", "RecordBatchReader")
    assert names == {kind: f"{kind} (3 rows)" for kind in kinds}
    assert read_corpus(["x"]).name == "list (1 row)"
    assert read_corpus(["x"] * 1200).name == "list (1,200 rows)"


def test_rows_that_are_added_later_do_not_change_the_corpus():
    rows, frame = list(TEXTS), pd.DataFrame(TEXTS)
    corpora = read_corpus(rows), read_corpus(frame)
    rows.append({"text": "late"})
    frame.loc[0, "text"] = "changed"
    assert [[r.text for r in corpus] for corpus in corpora] == [[row["text"] for row in TEXTS]] * 2


def test_a_corpus_in_memory_travels_to_a_worker_process_with_the_columns_it_uses():
    unused = "what no worker needs to know"
    rows = [{**row, "other": unused} for row in TEXTS]
    corpora = [read_corpus(make(rows)) for make in OBJECTS.values()]
    for corpus in corpora:
        assert unused.encode() not in pickle.dumps(corpus)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(list, corpora) == [list(corpora[0])] * len(corpora)


WRONG = [
    3, None, b"text", {"text": ["x"]}, {"x"}, iter(["x"]), (row for row in TEXTS), np.array(["x"]), pd.Series(["x"]),
    pl.Series(["x"]), pl.DataFrame(TEXTS).lazy(), pa.chunked_array([["x"]]), datasets.DatasetDict(),
    datasets.Dataset.from_list(TEXTS).to_iterable_dataset(), Record(id="1", text="x"),
]  # fmt: skip


@pytest.mark.parametrize("source", WRONG, ids=lambda source: type(source).__name__)
def test_what_is_no_corpus_is_refused_with_what_would_be(source):
    with refused("unsupported_source", CorpusError) as refusal:
        read_corpus(source)
    assert type(source).__name__ in refusal.error.found
    assert all(
        kind in refusal.error.do for kind in ("list[str]", "list[dict]", "pandas", "polars", "Dataset", "pyarrow")
    )


def test_nothing_in_memory_is_no_corpus_and_has_no_file_format():
    for nothing in (
        [],
        pd.DataFrame({"text": []}),
        pl.DataFrame({"text": []}),
        pa.table({"text": pa.array([], "str")}),
    ):
        with refused("empty_corpus", CorpusError):
            read_corpus(nothing)
    for options in ({"format": "jsonl"}, {"running_text": True}):
        with refused("not_a_file", PlanError):
            read_corpus(TEXTS, **options)


def test_json_and_memory_agree_on_every_value_that_json_can_hold(write):
    values = ["x", "", " ", "a\x00b", 3, -3, 2.0, 2.5, 1e300, True, False, None, [1], {"a": 1}, float("nan")]
    rows = [{"text": "x", "user": value, "id": i} for i, value in enumerate(values)]
    twin, corpus = read_corpus(write("twin.jsonl", rows), skip_bad=True), read_corpus(rows, skip_bad=True)
    assert plain(corpus) == plain(twin)
    assert corpus.skipped == twin.skipped == {"no_user": 4, "nul_character": 1, "wrong_type": 4}
