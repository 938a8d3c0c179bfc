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
from recollect.errors import CorpusError, PlanError

GOOD = b'{"user": "ann", "text": "fine", "id": "1"}\n'
USER_CSV = b"user,text\nann,fine\n"

# name of the file, its bytes, what the error says, and under which reason the record is skipped
RECORDS = [
    ("a.jsonl", GOOD + b"{nonsense\n", "a.jsonl, line 2: this is not JSON", "not JSON"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "cut o', "a.jsonl, line 2: this is not JSON", "not JSON"),
    ("a.jsonl", GOOD + b'["ann", "fine"]\n', "line 2: .* not an object", "not an object"),
    ("a.jsonl", GOOD + b"null\n", "line 2: .* not an object", "not an object"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "caf\xe9", "id": "2"}\n', r"line 2: byte 29 .*0xe9.* not UTF-8", "not UTF-8"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "\\ud800", "id": "2"}\n', "line 2: this is not JSON", "not JSON"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "a\x00b", "id": "2"}\n', "line 2: byte 27 .* NUL", "NUL"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "a\\u0000b", "id": "2"}\n', "line 2: 'text' holds a NUL .* position 1", "NUL"),
    ("a.jsonl", GOOD + b'{"user": "a\\u0000", "text": "x", "id": "2"}\n', "line 2: 'user' holds a NUL", "NUL"),
    ("a.jsonl", GOOD + b'{"user": null, "text": "x", "id": "2"}\n', "line 2: 'user' is null", "no user"),
    ("a.jsonl", GOOD + b'{"user": "", "text": "x", "id": "2"}\n', "line 2: 'user' is empty", "no user"),
    ("a.jsonl", GOOD + b'{"text": "x", "id": "2"}\n', "line 2: the column 'user' is missing; it has: 'id', 'text'", "no user"),
    ("a.jsonl", GOOD + b'{"user": NaN, "text": "x", "id": "2"}\n', "line 2: 'user' is null", "no user"),
    ("a.jsonl", GOOD + b'{"user": true, "text": "x", "id": "2"}\n', "line 2: 'user' is a truth value", "wrong type"),
    ("a.jsonl", GOOD + b'{"user": ["ann"], "text": "x", "id": "2"}\n', "line 2: 'user' is a list", "wrong type"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": 12, "id": "2"}\n', "line 2: 'text' is a number, where a string", "wrong type"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "", "id": "2"}\n', "line 2: 'text' is empty", "no text"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": " \\n ", "id": "2"}\n', "line 2: 'text' is empty", "no text"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": null, "id": "2"}\n', "line 2: 'text' is null", "no text"),
    ("a.jsonl", GOOD + b'{"user": "ann", "texts": "x", "id": "2"}\n', "line 2: the column 'text' is missing", "no text"),
    ("a.jsonl", GOOD + b'{"user": "ann", "text": "x", "id": ""}\n', "line 2: 'id' is empty", "no id"),
    ("a.jsonl", GOOD + b'{"user": "bob", "text": "x", "id": "1"}\n', "line 2: the id '1' was already used in .*line 1", "duplicate id"),
    ("a.jsonl", GOOD + b'{"user": "bob", "text": "x", "id": 1}\n', "line 2: the id '1' was already used in .*line 1", "duplicate id"),
    ("a.jsonl", b'{"source": "a", "target": "b"}\n{"source": "a", "target": ""}\n', "line 2: 'target' is empty", "no text"),
    ("a.jsonl", b'{"text": "a", "label": 1}\n{"text": "b", "label": null}\n', "line 2: 'label' is null", "no label"),
    ("a.jsonl", b'{"text": "a", "label": 1}\n{"text": "b"}\n', "line 2: the column 'label' is missing", "no label"),
    ("a.csv", b"text,label\n" + 1000 * b"a,1\n" + b"b,one\n", "line 1002: 'label' is a string that is no whole", "wrong type"),
    ("a.jsonl", b'{"text": "a", "label": "x"}\n{"text": "b", "label": 1.5}\n', "line 2: 'label' is a number, where", "wrong type"),
    ("a.txt", b"fine\ncaf\xe9\n", "a.txt, line 2: byte 4 .*0xe9", "not UTF-8"),
    ("a.txt", b"fine\n\nfine\n", "line 2: 'text' is empty", "no text"),
    ("a.txt", b"fine\nn\x00\n", "line 2: 'text' holds a NUL", "NUL"),
    ("a.csv", USER_CSV + b"bob,a,b\n", "a.csv, line 3: the row has 3 cells, the header has 2", "ragged row"),
    ("a.csv", USER_CSV + b"bob\n", "line 3: the row has 1 cell, the header has 2", "ragged row"),
    ("a.csv", USER_CSV + b'bob,"x"y\n', "line 3: the row cannot be parsed", "not CSV"),
    ("a.csv", USER_CSV + b'bob,"never closed\nann,x\n', "line 3: the row cannot be parsed: unexpected end", "not CSV"),
    ("a.csv", USER_CSV + b"bob,caf\xe9\n", "line 3: byte 8 .* not UTF-8", "not UTF-8"),
    ("a.csv", USER_CSV + b'bob,"a\ncaf\xe9"\n', "line 3: byte 4 .* not UTF-8", "not UTF-8"),
    ("a.csv", USER_CSV + b"bob,n\x00\n", "line 3: 'text' holds a NUL", "NUL"),
    ("a.csv", USER_CSV + b",x\n", "line 3: 'user' is empty", "no user"),
    ("a.tsv", b"user\ttext\nann\tfine\nbob\ta\tb\n", "a.tsv, line 3: the row has 3 cells", "ragged row"),
]  # fmt: skip


def in_words(value: object) -> str:
    """The name of a case: bytes differ from process to process, and say nothing to a reader."""
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)


@pytest.mark.parametrize(("name", "data", "says", "reason"), RECORDS, ids=in_words)
@pytest.mark.parametrize("packing", ["", ".gz"])
def test_a_bad_record_is_an_error_with_file_and_line_or_counted(write, name, data, says, reason, packing):
    says = says.replace(name, name + packing)
    path = write(name + packing, gzip.compress(data) if packing else data)
    with pytest.raises(CorpusError, match=says) as caught:
        read_corpus(path)
    assert str(path) in caught.value.found
    assert caught.value.do
    assert "fine" not in str(caught.value).replace(str(path), ""), "what a corpus holds is private"
    corpus = read_corpus(path, skip_bad=True)
    assert corpus.skipped == {reason: 1}
    assert list(corpus) == list(corpus)
    assert len(list(corpus)) == len(corpus) >= 1


def _whole_files() -> list[tuple[str, bytes, dict[str, object], str, str]]:
    some = gzip.compress(GOOD * 1000)
    packed = pa.compress(GOOD * 1000, codec="zstd", asbytes=True)
    return [
        ("a.jsonl", b"", {}, "a.jsonl is empty", ""),
        ("a.jsonl", b"\n\n", {}, "holds no records", ""),
        ("a.csv", b"user,text\n", {}, "holds no records", ""),
        ("a.csv", b"text,text\nx,y\n", {}, "two columns 'text'", ""),
        ("a.csv", b"te\xffxt\nx\n", {}, "a.csv, line 1: .* not UTF-8", ""),
        ("a.jsonl.gz", gzip.compress(b""), {}, "holds no records", ""),
        ("a.jsonl.gz", some[:-4], {}, "damaged or cut short", ""),
        ("a.jsonl.gz", some[: len(some) // 2], {}, "damaged or cut short", ""),
        ("a.jsonl.gz", some[:30] + b"XXXX" + some[34:], {}, "damaged or cut short", ""),
        ("a.jsonl.gz", GOOD, {}, "damaged or cut short", "should not end as if"),
        ("a.jsonl.zst", packed[:-4], {}, "damaged or cut short: Truncated", ""),
        ("a.jsonl.zst", GOOD, {}, "damaged or cut short", ""),
        ("a.parquet", b"PAR1 nonsense PAR1", {}, "damaged or cut short", ""),
        ("a.npz", b"PK nonsense", {}, "damaged or cut short", ""),
        ("a.dat", GOOD, {}, "suffix of .*a.dat", "--file-format"),
        ("a.jsonl.bz2", GOOD, {}, "suffix of", "--file-format"),
        ("a.json", GOOD, {}, "suffix of .*a.json", "Did you mean 'jsonl'"),
        ("noname", GOOD, {}, "suffix of .*noname", "jsonl, csv"),
        ("a.jsonl", b'{"body": "x", "user": "u"}\n', {}, "neither a column 'text'", "It has: 'body', 'user'"),
        ("a.csv", b"txt\nx\n", {}, "neither a column 'text'", "Did you mean 'txt'"),
        ("a.jsonl", GOOD, {"columns": Columns(user="usr")}, "no column 'usr'", "Did you mean 'user'\\? It has: 'id', 'text'"),
        ("a.jsonl", GOOD, {"columns": Columns(source="text")}, "no column 'target'", "It has"),
        ("a.jsonl", GOOD, {"columns": Columns(text="text", source="id")}, "texts and .* pairs at once", "either"),
        ("a.jsonl", b'{"source": "a", "target": "b", "label": 1}\n', {"columns": Columns(label="label")}, "no label", ""),
        ("a.jsonl", b'{"source": "a", "target": "b"}\n', {"split": Split()}, "only texts can be split", ""),
        ("a.txt", b"x\n", {"columns": Columns(user="user")}, "no column 'user'", "It has: 'text'"),
        ("a.jsonl", b'{"text": ""}\n{"text": ""}\n', {"skip_bad": True}, "no record that can be used .no text: 2", ""),
        ("a.jsonl", b'{"text": "x"}\n' * 1000 + b'{"text": "x", "user": "late"}\n', {}, "line 1001: .*'user' that the first", "--user-column"),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "options", "says", "does"), _whole_files(), ids=in_words)
def test_what_is_wrong_with_a_whole_file_stays_an_error(write, name, data, options, says, does):
    path = write(name, data)
    for skip_bad in (False, True):
        with pytest.raises(CorpusError, match=says) as caught:
            read_corpus(path, **{"skip_bad": skip_bad, **options})
        assert caught.value.do
        assert re.search(does, caught.value.do)


def test_a_missing_file_names_its_neighbour(write, tmp_path):
    write("notes.jsonl", GOOD)
    with pytest.raises(CorpusError, match=r"no file .*note.jsonl\.\n.*Did you mean 'notes.jsonl'"):
        read_corpus(tmp_path / "note.jsonl")
    with pytest.raises(CorpusError, match=r"no file .*/missing\.\n"):
        read_corpus(tmp_path / "missing" / "deep" / "notes.jsonl")
    with pytest.raises(CorpusError, match=r"No file matches .*\n.*Looked below"):
        read_corpus(f"{tmp_path}/*.csv")


def test_a_folder_without_shards_and_one_with_several_formats(write, tmp_path):
    (tmp_path / "none").mkdir()
    with pytest.raises(CorpusError, match=r"holds no shards\.\n.*\.jsonl"):
        read_corpus(tmp_path / "none")
    write("mixed/a.jsonl", GOOD)
    write("mixed/b.csv", USER_CSV)
    with pytest.raises(CorpusError, match=r"different formats: csv, jsonl\.\n.*\*\.csv"):
        read_corpus(tmp_path / "mixed")


def test_shards_must_have_the_same_columns(write, tmp_path):
    write("many/a.csv", "text\nx\n")
    write("many/b.csv", "body\ny\n")
    with pytest.raises(CorpusError, match=r"b.csv has no column 'text'\.\n.*'body'"):
        read_corpus(tmp_path / "many")
    write("many/b.csv", "text,user\ny,ann\n")
    with pytest.raises(CorpusError, match="'user' that the first records do not have"):
        read_corpus(tmp_path / "many", skip_bad=True)


def test_an_id_may_not_be_used_in_two_shards(write, tmp_path):
    write("many/a.jsonl", GOOD)
    write("many/b.jsonl", GOOD)
    with pytest.raises(CorpusError, match=r"b.jsonl, line 1: the id '1' was already used in .*a.jsonl, line 1"):
        read_corpus(tmp_path / "many")
    assert [r.id for r in read_corpus(tmp_path / "many", skip_bad=True)] == ["1"]


def test_a_file_that_the_system_does_not_let_us_read(tmp_path):
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    with pytest.raises(CorpusError, match="cannot be read: Too many levels"):
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
            with pytest.raises(CorpusError, match="cannot be read: Permission denied"):
                read_corpus(path)
        finally:
            if superuser:
                os.seteuid(0)


def test_a_pipe_cannot_be_read_twice(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(CorpusError, match="not an ordinary file"):
        read_corpus(tmp_path / "pipe.jsonl")


def test_an_unknown_format_is_refused(write):
    with pytest.raises(PlanError, match="Did you mean 'jsonl'"):
        read_corpus(write("a.txt", "x"), format="jsnl")


def test_bytes_in_a_table_that_are_not_utf8(tmp_path):
    raw = pa.array([b"fine", b"caf\xe9", b"also fine"], pa.binary())
    table = pa.table({"text": pa.Array.from_buffers(pa.string(), 3, raw.buffers())})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(CorpusError, match=r"a.parquet, row 2: byte 4 .*0xe9"):
        read_corpus(tmp_path / "a.parquet")
    corpus = read_corpus(tmp_path / "a.parquet", skip_bad=True)
    assert ([r.id for r in corpus], corpus.skipped) == (["1", "3"], {"not UTF-8": 1})


def test_nulls_in_a_table(tmp_path):
    table = pa.table({"text": ["x", None, "z"], "user": [1.0, 2.0, None]})
    pq.write_table(table, tmp_path / "a.parquet")
    corpus = read_corpus(tmp_path / "a.parquet", skip_bad=True)
    assert ([r.user for r in corpus], corpus.skipped) == (["1"], {"no text": 1, "no user": 1})


ARRAYS = [
    ({"x": np.zeros((3, 2))}, "no column 'y'"),
    ({"y": np.zeros(3, int)}, "no column 'x'"),
    ({"x": np.zeros((3, 2)), "y": np.zeros(4, int)}, "differ in length: x has 3, y has 4"),
    ({"x": np.zeros(3), "y": np.zeros(3, int)}, "'x' .* has the shape"),
    ({"x": np.zeros((3, 2)), "y": np.zeros((3, 2), int)}, "'y' .* has the shape"),
    ({"x": np.zeros((3, 2)), "y": np.zeros(3)}, "row 1: 'y' is a number, where"),
    ({"x": np.zeros((3, 2), "c16"), "y": np.zeros(3, int)}, "has the type complex128"),
    ({"x": np.zeros((0, 2)), "y": np.zeros(0, int)}, "holds no records"),
    ({"x": np.array(3.0), "y": np.zeros(3, int)}, "'x' .* has the type"),
    ({"x": np.array([[1.0], [np.nan]]), "y": np.zeros(2, int)}, "row 2: 'x' holds a number that is not finite"),
]


@pytest.mark.parametrize(("arrays", "says"), ARRAYS, ids=lambda value: value if isinstance(value, str) else "")
def test_arrays_that_make_no_records(tmp_path, arrays, says):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(CorpusError, match=says):
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
    with pytest.raises(CorpusError, match=r"a\.npz is damaged"):
        read_corpus(tmp_path / "a.npz")
