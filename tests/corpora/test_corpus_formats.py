"""Every format gives the same records."""

from __future__ import annotations

import gzip
import os
import zipfile

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recollect.corpora import Columns, Corpus, Record, read_corpus
from recollect.corpora.readers import arrays
from recollect.errors import CorpusError, PlanError
from recollect.testing.refusals import refused

ROWS = [
    {"user": "ann", "text": "Hello, world", "id": "a"},
    {"user": "bob", "text": 'He said "no"\tand\nleft', "id": "b"},
    {"user": "ann", "text": "Привет 世界 😀", "id": "c"},
]


def plain(corpus: Corpus) -> list[tuple[object, ...]]:
    return [(r.id, r.user, r.text, r.source, r.target, r.label) for r in corpus]


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "parquet"])
def test_every_format_and_packing_gives_the_same_records(write, format, packing):
    corpus = read_corpus(write(f"notes.{format}{packing}", ROWS))
    assert plain(corpus) == [(row["id"], row["user"], row["text"], None, None, None) for row in ROWS]
    assert (len(corpus), corpus.summary.users, corpus.summary.kind) == (3, 2, "text")
    assert corpus.digest == Corpus.of(Record(**row) for row in ROWS).digest


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_a_text_file_has_a_record_per_line_or_is_one_running_text(write, packing):
    rows = [{"text": " one "}, {"text": "two\u2028still two\x85"}, {"text": "three"}]
    path = write(f"lines.txt{packing}", rows)
    assert plain(read_corpus(path)) == [(str(i), None, row["text"], None, None, None) for i, row in enumerate(rows, 1)]
    assert [record.text for record in read_corpus(path, running_text=True)] == [
        " one \ntwo\u2028still two\x85\nthree\n"
    ]


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "parquet"])
def test_pairs_and_labels(write, format):
    pairs = [{"source": "a b", "target": "c"}, {"source": "d", "target": "e f"}]
    assert plain(read_corpus(write(f"p.{format}", pairs))) == [
        ("1" if format in ("jsonl", "parquet") else "2", None, None, "a b", "c", None),
        ("2" if format in ("jsonl", "parquet") else "3", None, None, "d", "e f", None),
    ]
    labelled = [{"text": "good", "label": 1}, {"text": "bad", "label": 0}]
    assert [record.label for record in read_corpus(write(f"l.{format}", labelled))] == [1, 0]
    names = [{"text": "good", "label": "pos"}, {"text": "bad", "label": "7"}]
    corpus = read_corpus(write(f"n.{format}", names))
    assert [record.label for record in corpus] == ["pos", "7"]
    assert corpus.summary.kind == "labelled"


def test_digits_in_quotes_are_numbers_in_a_table_without_types_and_names_in_json(write):
    assert [r.label for r in read_corpus(write("a.csv", "text,label\nx,0\ny,1\n"))] == [0, 1]
    assert [r.label for r in read_corpus(write("a.jsonl", [{"text": "x", "label": "0"}]))] == ["0"]


def test_columns_are_named_by_option(write):
    rows = [{"who": 7, "body": "x", "source": "s", "target": "t", "key": 1.0, "text": "other"}]
    path = write("c.jsonl", rows)
    assert plain(read_corpus(path)) == [("1", None, None, "s", "t", None)]
    assert plain(read_corpus(path, columns=Columns(text="text"))) == [("1", None, "other", None, None, None)]
    assert plain(read_corpus(path, columns=Columns(text="body", user="who", id="key"))) == [
        ("1", "7", "x", None, None, None)
    ]
    assert plain(read_corpus(path, columns=Columns(source="target", target="source"))) == [
        ("1", None, None, "t", "s", None)
    ]
    assert plain(read_corpus(path, columns=Columns(text="text", label="who")))[0][-1] == 7


def test_an_empty_name_reads_a_corpus_without_that_column(write):
    rows = [{"user": "ann", "text": "x", "id": "same", "label": 1}, {"user": None, "text": "y", "id": "same"}]
    without = Columns(user="", id="", label="")
    assert plain(read_corpus(write("a.jsonl", rows), columns=without)) == [
        ("1", None, "x", None, None, None),
        ("2", None, "y", None, None, None),
    ]
    unnamed = write("a.csv", ",text\n0,x\n1,y\n")  # as pandas writes its index
    assert [r.user for r in read_corpus(unnamed, columns=without)] == [None, None]
    with refused("unnamed_column", PlanError):
        Columns(text="")


def test_numbers_may_be_users_and_ids(write):
    rows = [
        {"user": 12, "text": "x", "id": 1},
        {"user": 12.5, "text": "y", "id": 2.0},
        {"user": -3, "text": "z", "id": "q"},
    ]
    assert [(r.id, r.user) for r in read_corpus(write("n.jsonl", rows))] == [("1", "12"), ("2", "12.5"), ("q", "-3")]


def test_a_folder_and_a_glob_of_shards_are_read_in_the_order_of_names(write, tmp_path):
    write("many/b.jsonl", [{"text": "third"}])
    write("many/a.jsonl.gz", [{"text": "first"}, {"text": "second"}])
    write("many/_SUCCESS", "")
    write("many/.hidden.jsonl", "broken")
    write("many/README.md", "not a shard")
    folder, pattern = read_corpus(tmp_path / "many"), read_corpus(f"{tmp_path}/many/*.jsonl*")
    expected = [("a.jsonl.gz:1", "first"), ("a.jsonl.gz:2", "second"), ("b.jsonl:1", "third")]
    assert [(r.id, r.text) for r in folder] == expected == [(r.id, r.text) for r in pattern]
    assert folder.digest == pattern.digest
    write("many/deep/c.jsonl", [{"text": "fourth"}])
    assert [r.id for r in read_corpus(f"{tmp_path}/m*/**/*.jsonl")] == ["many/b.jsonl:1", "many/deep/c.jsonl:1"]
    assert len(read_corpus(tmp_path / "many")) == 3


def test_a_file_whose_name_looks_like_a_glob_is_a_file(write):
    assert len(read_corpus(write("notes[1].jsonl", [{"text": "x"}]))) == 1


def test_the_format_option_overrides_the_suffix(write):
    assert len(read_corpus(write("wiki.train.raw", "a\nb\n"), format="txt")) == 2
    assert len(read_corpus(write("wiki.raw.gz", gzip.compress(b"a\nb\n")), format="txt")) == 2
    assert [r.text for r in read_corpus(write("odd.jsonl", "text\n{}\n"), format="csv")] == ["{}"]


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_data(write):
    for name, data in {
        "a.txt": "\ufeffone\r\ntwo\r\n",
        "a.jsonl": '\ufeff{"text": "one"}\r\n{"text": "two"}\r\n',
        "a.csv": "\ufefftext\r\none\r\ntwo\r\n",
    }.items():
        assert [r.text for r in read_corpus(write(name, data))] == ["one", "two"], name
    assert next(iter(read_corpus(write("r.txt", "\ufeffone"), running_text=True))).text == "one"


def test_blank_lines_hold_no_record_in_json_and_csv(write):
    assert [r.id for r in read_corpus(write("a.jsonl", '{"text": "x"}\n\n  \n{"text": "y"}\n\n'))] == ["1", "4"]
    assert [r.id for r in read_corpus(write("a.csv", "text\n\nx\n\ny\n\n"))] == ["3", "5"]


def test_a_cell_may_span_lines_and_later_records_keep_their_line_numbers(write):
    corpus = read_corpus(write("a.csv", 'text,user\n"one\ntwo\nthree",ann\nfour,bob\n'))
    assert [(r.id, r.text) for r in corpus] == [("2", "one\ntwo\nthree"), ("5", "four")]


def test_quotes_are_ordinary_characters_in_a_plain_table(write):
    path = write("a.tsv", 'text\tuser\n"Oh," he said\tann\n')
    with refused("bad_csv_row", CorpusError):
        read_corpus(path)
    assert next(iter(read_corpus(path, format="tsv-plain"))).text == '"Oh," he said'


def test_a_long_cell_is_read_whole(write):
    assert len(next(iter(read_corpus(write("a.csv", f"text\n{'x' * 300_000}\n")))).text) == 300_000


def test_tables_with_large_strings_and_categories(write, tmp_path):
    users = pa.array(["ann", "bob", "ann"]).dictionary_encode()
    table = pa.table({"text": pa.array(["x", "y", "z"], pa.large_string()), "user": users, "junk": [[1], [2], [3]]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    assert [(r.id, r.user, r.text) for r in read_corpus(tmp_path / "t.parquet")] == [
        ("1", "ann", "x"),
        ("2", "bob", "y"),
        ("3", "ann", "z"),
    ]


@pytest.mark.parametrize("compressed", [True, False])
def test_arrays_are_streamed_row_by_row(tmp_path, monkeypatch, compressed):
    monkeypatch.setattr(arrays, "BLOCK_BYTES", 100)  # several blocks, the last one shorter
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (23, 4, 3), dtype=np.uint8), rng.integers(0, 10, 23, dtype=np.uint8)
    (np.savez_compressed if compressed else np.savez)(tmp_path / "d.npz", x=x, y=y)
    records = list(read_corpus(tmp_path / "d.npz"))
    assert np.array_equal(np.stack([r.array for r in records]), x)
    assert [r.label for r in records] == y.tolist()
    assert [r.id for r in records] == [str(i) for i in range(1, 24)]
    assert records[0].array.base is None, "a row must not keep its whole block in memory"


def test_arrays_may_have_users_names_as_labels_and_labels_in_a_column(tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.savez(tmp_path / "u.npz", x=x, y=np.array([["cat"], ["dog"], ["cat"]]), user=np.array([1, 2, 1]))
    corpus = read_corpus(tmp_path / "u.npz")
    assert [(r.user, r.label) for r in corpus] == [("1", "cat"), ("2", "dog"), ("1", "cat")]
    np.savez(tmp_path / "o.npz", x=x, kind=np.array([True, False, True]))
    assert [r.label for r in read_corpus(tmp_path / "o.npz", columns=Columns(label="kind"))] == [1, 0, 1]


def test_arrays_have_no_text_column(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 2)), y=np.zeros(2, int))
    with refused("not_texts", CorpusError):
        read_corpus(tmp_path / "a.npz", columns=Columns(text="x"))


def test_arrays_saved_by_other_means(tmp_path):
    x = np.asfortranarray(np.zeros((3, 2)))
    np.savez(tmp_path / "f.npz", x=x, y=np.zeros(3, int))
    with refused("unsuitable_array", CorpusError):
        read_corpus(tmp_path / "f.npz")
    np.savez(tmp_path / "p.npz", x=np.array([[{}]]), y=np.zeros(1, int))
    with refused("unsuitable_array", CorpusError):
        read_corpus(tmp_path / "p.npz")
    with zipfile.ZipFile(tmp_path / "z.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (9, 9)}")
        archive.writestr("y.npy", b"")
    with refused("damaged_file", CorpusError):
        read_corpus(tmp_path / "z.npz")


def test_a_saved_hugging_face_data_set_is_read_without_a_network(tmp_path):
    data = datasets.Dataset.from_list(ROWS)
    data.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": data, "test": data.select([1])}).save_to_disk(tmp_path / "two")
    expected = plain(Corpus.of(Record(**row) for row in ROWS))
    assert plain(read_corpus(f"hf:{tmp_path}/one:train")) == expected == plain(read_corpus(f"hf:{tmp_path}/two:train"))
    assert plain(read_corpus(f"hf:{tmp_path}/two:test")) == expected[1:2]
    with refused("unknown_split", CorpusError):
        read_corpus(f"hf:{tmp_path}/two:tests")
    with refused("unknown_split", CorpusError):
        read_corpus(f"hf:{tmp_path}/one:test")


def test_a_folder_of_data_files_is_read_through_the_datasets_library(write, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    write("data/train.jsonl", [{"text": "x"}, {"text": "y"}])
    assert [r.text for r in read_corpus(f"hf:{tmp_path}/data:train")] == ["x", "y"]
    with refused("dataset_not_loaded", CorpusError):
        read_corpus(f"hf:{tmp_path}/data:nope")


@pytest.mark.parametrize("ref", ["hf:imdb", "hf:", "hf::train", "hf:a:b:c:d"])
def test_a_name_without_a_split_is_explained(ref):
    with refused("missing_split", CorpusError):
        read_corpus(ref)


@pytest.mark.skipif(os.environ.get("HF_HUB_OFFLINE") != "1", reason="the hub can be reached")
def test_a_hub_that_cannot_be_reached_is_an_error():
    with refused("dataset_not_loaded", CorpusError):
        read_corpus("hf:no-such/data-set:train")


def test_a_file_that_changed_between_two_passes_is_refused(write):
    path = write("a.jsonl", [{"text": "x"}])
    corpus = read_corpus(path)
    path.write_text('{"text": "xy"}\n')
    with refused("file_changed", CorpusError):
        list(corpus)
