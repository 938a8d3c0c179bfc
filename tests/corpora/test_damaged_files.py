"""Bad input gets one clear error with file and line; skipped, it is counted."""

# ruff: noqa: E501 - a table is read row by row

from __future__ import annotations

import gzip
import os
import re
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recollect.corpora import Columns, Split, read_corpus
from recollect.corpora.readers.faults import describe_reason
from recollect.errors import CorpusError, PlanError
from recollect.testing.refusals import refused

GOOD = b'{"user": "ann", "text": "fine", "id": "1"}\n'
USER_CSV = b"user,text\nann,fine\n"
WORDING = Path(__file__).parent / "wording.txt"

# name of the file, its bytes, the line of the bad record, and the code under which it is refused or skipped
RECORDS = [
    ("a.jsonl", GOOD + b"{nonsense\n", 2, "bad_json_line"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "cut o', 2, "bad_json_line"),
    ("a.jsonl", GOOD + b'["ann", "fine"]\n', 2, "not_an_object"),
    ("a.jsonl", GOOD + b"null\n", 2, "not_an_object"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "caf\xe9", "id": "2"}\n', 2, "not_utf8"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "\\ud800", "id": "2"}\n', 2, "bad_json_line"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "a\x00b", "id": "2"}\n', 2, "nul_character"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "a\\u0000b", "id": "2"}\n', 2, "nul_character"),
    ("a.jsonl", GOOD + b'{"user": "a\\u0000", "text": "x", "id": "2"}\n', 2, "nul_character"),
    ("a.jsonl", GOOD + b'{"user": null, "text": "x", "id": "2"}\n', 2, "no_user"),
    ("a.jsonl", GOOD + b'{"user": "", "text": "x", "id": "2"}\n', 2, "no_user"),
    ("a.jsonl", GOOD + b'{"text": "x", "id": "2"}\n', 2, "no_user"),
    ("a.jsonl", GOOD + b'{"user": NaN, "text": "x", "id": "2"}\n', 2, "no_user"),
    ("a.jsonl", GOOD + b'{"user": true, "text": "x", "id": "2"}\n', 2, "wrong_type"),
    ("a.jsonl", GOOD + b'{"user": ["ann"], "text": "x", "id": "2"}\n', 2, "wrong_type"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": 12, "id": "2"}\n', 2, "wrong_type"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "", "id": "2"}\n', 2, "no_text"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": " \\n ", "id": "2"}\n', 2, "no_text"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": null, "id": "2"}\n', 2, "no_text"),
    ("a.jsonl", GOOD + b'{"user": "ann", "texts": "x", "id": "2"}\n', 2, "no_text"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "x", "id": ""}\n', 2, "no_id"),
    ("a.jsonl", GOOD + b'{"user": "bob", "text": "x", "id": "1"}\n', 2, "duplicate_id"),
    ("a.jsonl", GOOD + b'{"user": "bob", "text": "x", "id": 1}\n', 2, "duplicate_id"),
    ("a.jsonl", b'{"source": "a", "target": "b"}\n{"source": "a", "target": ""}\n', 2, "no_text"),
    ("a.jsonl", b'{"text": "a", "label": 1}\n{"text": "b", "label": null}\n', 2, "no_label"),
    ("a.jsonl", b'{"text": "a", "label": 1}\n{"text": "b"}\n', 2, "no_label"),
    ("a.csv", b"text,label\n" + 1000 * b"a,1\n" + b"b,one\n", 1002, "wrong_type"),
    ("a.jsonl", b'{"text": "a", "label": "x"}\n{"text": "b", "label": 1.5}\n', 2, "wrong_type"),
    ("a.txt", b"fine\ncaf\xe9\n", 2, "not_utf8"),
    ("a.txt", b"fine\n\nfine\n", 2, "no_text"),
    ("a.txt", b"fine\nn\x00\n", 2, "nul_character"),
    ("a.csv", USER_CSV + b"bob,a,b\n", 3, "ragged_row"),
    ("a.csv", USER_CSV + b"bob\n", 3, "ragged_row"),
    ("a.csv", USER_CSV + b'bob,"x"y\n', 3, "bad_csv_row"),
    ("a.csv", USER_CSV + b'bob,"never closed\nann,x\n', 3, "bad_csv_row"),
    ("a.csv", USER_CSV + b"bob,caf\xe9\n", 3, "not_utf8"),
    ("a.csv", USER_CSV + b'bob,"a\ncaf\xe9"\n', 3, "not_utf8"),
    ("a.csv", USER_CSV + b"bob,n\x00\n", 3, "nul_character"),
    ("a.csv", USER_CSV + b",x\n", 3, "no_user"),
    ("a.tsv", b"user\ttext\nann\tfine\nbob\ta\tb\n", 3, "ragged_row"),
]  # fmt: skip


def in_words(value: object) -> str:
    """The name of a case: bytes differ from process to process, and say nothing to a reader."""
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)


@pytest.mark.parametrize(("name", "data", "line", "code"), RECORDS, ids=in_words)
@pytest.mark.parametrize("packing", ["", ".gz"])
def test_a_bad_record_is_an_error_with_file_and_line_or_counted(write, name, data, line, code, packing):
    path = write(name + packing, gzip.compress(data) if packing else data)
    with refused(code, CorpusError) as refusal:
        read_corpus(path)
    assert refusal.error.found.startswith(f"{path}, line {line}: ")
    assert refusal.error.do
    assert "fine" not in str(refusal.error).replace(str(path), ""), "what a corpus holds is private"
    corpus = read_corpus(path, skip_bad=True)
    assert corpus.skipped == {code: 1}
    assert describe_reason(code) != code, "a reason has words of its own"
    assert list(corpus) == list(corpus)
    assert len(list(corpus)) == len(corpus) >= 1


def _whole_files() -> list[tuple[str, bytes, dict[str, object], str]]:
    some = gzip.compress(GOOD * 1000)
    packed = pa.compress(GOOD * 1000, codec="zstd", asbytes=True)
    return [
        ("a.jsonl", b"", {}, "empty_file"),
        ("a.jsonl", b"\n\n", {}, "empty_corpus"),
        ("a.csv", b"user,text\n", {}, "empty_corpus"),
        ("a.csv", b"text,text\nx,y\n", {}, "duplicate_column"),
        ("a.csv", b"te\xffxt\nx\n", {}, "not_utf8"),
        ("a.jsonl.gz", gzip.compress(b""), {}, "empty_corpus"),
        ("a.jsonl.gz", some[:-4], {}, "damaged_file"),
        ("a.jsonl.gz", some[: len(some) // 2], {}, "damaged_file"),
        ("a.jsonl.gz", some[:30] + b"XXXX" + some[34:], {}, "damaged_file"),
        ("a.jsonl.gz", GOOD, {}, "damaged_file"),
        ("a.jsonl.zst", packed[:-4], {}, "damaged_file"),
        ("a.jsonl.zst", GOOD, {}, "damaged_file"),
        ("a.parquet", b"PAR1 nonsense PAR1", {}, "damaged_file"),
        ("a.npz", b"PK nonsense", {}, "damaged_file"),
        ("a.dat", GOOD, {}, "unknown_format"),
        ("a.jsonl.bz2", GOOD, {}, "unknown_format"),
        ("a.json", GOOD, {}, "unknown_format"),
        ("noname", GOOD, {}, "unknown_format"),
        ("a.jsonl", b'{"body": "x", "user": "u"}\n', {}, "missing_column"),
        ("a.csv", b"txt\nx\n", {}, "missing_column"),
        ("a.jsonl", GOOD, {"columns": Columns(user="usr")}, "missing_column"),
        ("a.jsonl", GOOD, {"columns": Columns(source="text")}, "missing_column"),
        ("a.jsonl", GOOD, {"columns": Columns(text="text", source="id")}, "texts_and_pairs"),
        ("a.jsonl", b'{"source": "a", "target": "b", "label": 1}\n', {"columns": Columns(label="label")}, "labelled_pairs"),
        ("a.jsonl", b'{"source": "a", "target": "b"}\n', {"split": Split()}, "not_texts"),
        ("a.txt", b"x\n", {"columns": Columns(user="user")}, "missing_column"),
        ("a.jsonl", b'{"text": ""}\n{"text": ""}\n', {"skip_bad": True}, "no_usable_record"),
        ("a.jsonl", b'{"text": "x"}\n' * 1000 + b'{"text": "x", "user": "late"}\n', {}, "late_column"),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "options", "code"), _whole_files(), ids=in_words)
def test_what_is_wrong_with_a_whole_file_stays_an_error(write, name, data, options, code):
    path = write(name, data)
    for skip_bad in (False, True):
        with refused(code, CorpusError) as refusal:
            read_corpus(path, **{"skip_bad": skip_bad, **options})
        assert refusal.error.do
        assert str(path) in refusal.error.found


def test_the_wording_of_errors_is_the_one_that_was_reviewed(write, tmp_path):
    cases = [(name, data, {}, code) for name, data, _, code in RECORDS] + _whole_files()
    said = []
    for name, data, options, code in cases:
        if code in ("damaged_file", "bad_json_line", "bad_csv_row"):  # half of these are words of other libraries
            continue
        with refused(code) as refusal:
            read_corpus(write(name, data), **options)
        said.append(f"{code}: {refusal.error}".replace(f"{tmp_path}/", ""))
    assert "\n".join(said) + "\n" == WORDING.read_text(encoding="utf-8"), f"if the words are better, change {WORDING}"


def test_a_missing_file_names_its_neighbour(write, tmp_path):
    write("notes.jsonl", GOOD)
    with refused("missing_file", CorpusError) as refusal:
        read_corpus(tmp_path / "note.jsonl")
    assert "'notes.jsonl'" in refusal.error.do
    with refused("missing_file", CorpusError) as refusal:
        read_corpus(tmp_path / "missing" / "deep" / "notes.jsonl")
    assert f"{tmp_path / 'missing'}." in refusal.error.found
    with refused("no_match", CorpusError) as refusal:
        read_corpus(f"{tmp_path}/*.csv")
    assert str(tmp_path) in refusal.error.do


def test_a_folder_without_shards_and_one_with_several_formats(write, tmp_path):
    (tmp_path / "none").mkdir()
    with refused("no_shards", CorpusError):
        read_corpus(tmp_path / "none")
    write("mixed/a.jsonl", GOOD)
    write("mixed/b.csv", USER_CSV)
    with refused("mixed_formats", CorpusError) as refusal:
        read_corpus(tmp_path / "mixed")
    assert "/mixed/*.csv" in refusal.error.do


def test_shards_must_have_the_same_columns(write, tmp_path):
    write("many/a.csv", "text\nx\n")
    write("many/b.csv", "body\ny\n")
    with refused("missing_column", CorpusError) as refusal:
        read_corpus(tmp_path / "many")
    assert "b.csv" in refusal.error.found
    write("many/b.csv", "text,user\ny,ann\n")
    with refused("late_column", CorpusError):
        read_corpus(tmp_path / "many", skip_bad=True)


def test_an_id_may_not_be_used_in_two_shards(write, tmp_path):
    write("many/a.jsonl", GOOD)
    write("many/b.jsonl", GOOD)
    with refused("duplicate_id", CorpusError) as refusal:
        read_corpus(tmp_path / "many")
    assert re.search("b.jsonl, line 1: .*a.jsonl, line 1", refusal.error.found)
    assert [r.id for r in read_corpus(tmp_path / "many", skip_bad=True)] == ["1"]


def test_a_file_that_the_system_does_not_let_us_read(tmp_path):
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    with refused("unreadable_file", CorpusError):
        read_corpus(tmp_path / "loop.jsonl")


def test_a_file_without_permission():
    superuser = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_bytes(GOOD)
        Path(folder).chmod(0o755)
        path.chmod(0)
        try:
            if superuser:  # who may read everything
                os.seteuid(65534)
            with refused("unreadable_file", CorpusError):
                read_corpus(path)
        finally:
            if superuser:
                os.seteuid(0)


def test_a_pipe_cannot_be_read_twice(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with refused("not_a_file", CorpusError):
        read_corpus(tmp_path / "pipe.jsonl")


def test_an_unknown_format_is_refused(write):
    with refused("unknown_choice", PlanError):
        read_corpus(write("a.txt", "x"), format="jsnl")


def test_bytes_in_a_table_that_are_not_utf8(tmp_path):
    raw = pa.array([b"fine", b"caf\xe9", b"also fine"], pa.binary())
    table = pa.table({"text": pa.Array.from_buffers(pa.string(), 3, raw.buffers())})
    pq.write_table(table, tmp_path / "a.parquet")
    with refused("not_utf8", CorpusError) as refusal:
        read_corpus(tmp_path / "a.parquet")
    assert "a.parquet, row 2: byte 4" in refusal.error.found
    corpus = read_corpus(tmp_path / "a.parquet", skip_bad=True)
    assert ([r.id for r in corpus], corpus.skipped) == (["1", "3"], {"not_utf8": 1})


def test_nulls_in_a_table(tmp_path):
    table = pa.table({"text": ["x", None, "z"], "user": [1.0, 2.0, None]})
    pq.write_table(table, tmp_path / "a.parquet")
    corpus = read_corpus(tmp_path / "a.parquet", skip_bad=True)
    assert ([r.user for r in corpus], corpus.skipped) == (["1"], {"no_text": 1, "no_user": 1})


ARRAYS = [
    ({"x": np.zeros((3, 2))}, "missing_column"),
    ({"y": np.zeros(3, int)}, "missing_column"),
    ({"x": np.zeros((3, 2)), "y": np.zeros(4, int)}, "unequal_lengths"),
    ({"x": np.zeros(3), "y": np.zeros(3, int)}, "unsuitable_array"),
    ({"x": np.zeros((3, 2)), "y": np.zeros((3, 2), int)}, "unsuitable_array"),
    ({"x": np.zeros((3, 2)), "y": np.zeros(3)}, "wrong_type"),
    ({"x": np.zeros((3, 2), "c16"), "y": np.zeros(3, int)}, "unsuitable_array"),
    ({"x": np.zeros((0, 2)), "y": np.zeros(0, int)}, "empty_corpus"),
    ({"x": np.array(3.0), "y": np.zeros(3, int)}, "unsuitable_array"),
    ({"x": np.array([[1.0], [np.nan]]), "y": np.zeros(2, int)}, "not_finite"),
]


@pytest.mark.parametrize(("arrays", "code"), ARRAYS, ids=lambda value: value if isinstance(value, str) else "")
def test_arrays_that_make_no_records(tmp_path, arrays, code):
    np.savez(tmp_path / "a.npz", **arrays)
    with refused(code, CorpusError):
        read_corpus(tmp_path / "a.npz")


HEADERS = [
    "{'descr': '|u1', 'fortran_order': False, 'shape': (9, 9 ",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (-9, -9)}",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (81, 0)}",
    "{'descr': '<U0', 'fortran_order': False, 'shape': (9, 9)}",
    "{'descr': '|u1', 'fortran_order': False, 'shape': (10000000000000000000000, 9)}",
    "{1: 2, 'descr': 3}",
    "'''",
    "(" * 300,
    "9" * 5000,
]


@pytest.mark.parametrize("header", HEADERS)
def test_arrays_with_damaged_headers(tmp_path, header):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name in ("x.npy", "y.npy"):
            data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(81)
            archive.writestr(name, data)
    with refused("damaged_file", CorpusError):
        read_corpus(tmp_path / "a.npz")
