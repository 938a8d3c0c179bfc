"""Whatever happens to the bytes of a file, reading it ends in a corpus or in one clear error."""

from __future__ import annotations

import io
from collections.abc import Callable
from operator import xor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.corpora import Columns, Corpus, Split, read_corpus
from recollect.errors import CorpusError

ROWS = [
    {"user": f"user{i % 3}", "text": f'Text no. {i} über 世界. It goes on, "quoted"!', "id": str(i), "label": i % 2}
    for i in range(20)
]
NAMES = [
    f"a.{format}{packing}" for format in ("jsonl", "csv", "tsv", "parquet", "txt") for packing in ("", ".gz", ".zst")
]


@pytest.fixture(scope="module")
def files(content) -> dict[str, bytes]:
    """A sound file of every format."""
    archive = io.BytesIO()
    x = np.arange(120, dtype=np.uint8).reshape(20, 3, 2)
    np.savez(archive, x=x, y=np.arange(20) % 4, user=np.arange(20) % 3)
    return {name: content(name, ROWS) for name in NAMES} | {"a.npz": archive.getvalue()}


STEPS: dict[str, Callable[[bytes, int, bytes], bytes]] = {
    "cut": lambda data, at, _: data[:at],
    "flip": lambda data, at, more: data[:at] + bytes(map(xor, data[at:], more)) + data[at + len(more) :],
    "insert": lambda data, at, more: data[:at] + more + data[at:],
    "delete": lambda data, at, more: data[:at] + data[at + len(more) :],
    "double": lambda data, at, _: data[:at] + data[at : at + 40] + data[at:],
}
changes = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=8)),
    min_size=1,
    max_size=4,
)


def changed(data: bytes, change: list[tuple[str, float, bytes]]) -> bytes:
    """The bytes after a few accidents."""
    for step, place, more in change:
        data = STEPS[step](data, int(place * len(data)), more)
    return data


def attempt(path: Path, **options: object) -> Corpus | None:
    """The corpus, or None for a clear error; any other exception is a failure of the test."""
    try:
        return read_corpus(path, **options)
    except CorpusError as error:
        clear = bool(error.do) and str(path.parent) in error.found
    assert clear
    return None


@pytest.mark.parametrize("name", [*NAMES, "a.npz"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(change=changes)
def test_damaged_bytes_give_a_corpus_or_a_clear_error(tmp_path, files, name, change):
    path = tmp_path / name
    path.write_bytes(changed(files[name], change))
    strict, lenient = attempt(path), attempt(path, skip_bad=True)
    if strict is not None:
        assert lenient is not None
        assert strict.digest == lenient.digest
        assert not lenient.skipped
    if lenient is not None:
        records = list(lenient)
        assert records == list(lenient), "each pass drops the same records"
        assert len({record.id for record in records}) == len(records) == len(lenient)
        for record in records:
            assert "\x00" not in f"{record.id}{record.user}{record.text}"
            f"{record.id}{record.user}{record.text}".encode()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=200), format=st.sampled_from(["jsonl", "csv", "tsv", "tsv-plain", "txt", "parquet", "npz"])
)
def test_any_bytes_under_any_name(tmp_path, data, format):
    path = tmp_path / "any"
    path.write_bytes(data)
    attempt(path, format=format, skip_bad=True)
    attempt(path, format=format, skip_bad=True, running_text=True, split=Split(by="sentences", minimum=2))
    attempt(path, format=format, columns=Columns(text="text", user="user"))
