from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora import Record
from recollect.digests import digest_bytes

words = st.text(max_size=20)
records = st.one_of(
    st.builds(Record, id=words, user=st.none() | words, text=words, label=st.none() | words | st.integers()),
    st.builds(Record, id=words, user=st.none() | words, source=words, target=words),
)


def slow_digest(record: Record) -> str:
    """Part by part, as an obvious twin."""
    parts = []
    for name in ("text", "source", "target", "label"):
        value = getattr(record, name)
        if value is not None:
            parts += [f"{name}:{type(value).__name__}".encode(), str(value).encode("utf-8", "surrogatepass")]
    if record.array is not None:
        parts += [f"array:{record.array.dtype.str}:{record.array.shape}".encode(), record.array.tobytes()]
    return digest_bytes(*parts)


@settings(deadline=None)
@given(record=records)
def test_the_digest_equals_its_slow_twin(record):
    assert record.digest == slow_digest(record)


@settings(deadline=None)
@given(one=records, other=records)
def test_equal_contents_and_only_they_have_equal_digests(one, other):
    def content(record):
        return [(name, getattr(record, name)) for name in ("text", "source", "target", "label")]

    assert (one.digest == other.digest) == (content(one) == content(other))


def test_the_digest_sees_type_and_shape_but_neither_owner_nor_id():
    x = np.arange(6, dtype=np.uint8)
    arrays = [x, x.astype(np.int16), x.reshape(2, 3), x[::-1]]
    assert len({Record(id="1", array=a, label=0).digest for a in arrays}) == 4
    assert (
        Record(id="1", array=x.reshape(2, 3).T.copy().T, label=0).digest
        == Record(id="1", array=arrays[2], label=0).digest
    )
    assert Record(id="1", user="a", text="x").digest == Record(id="2", text="x").digest
    assert Record(id="1", text="x", label=1).digest != Record(id="1", text="x", label="1").digest


def test_a_record_of_checked_fields_is_like_any_other():
    quick, slow = Record.from_fields({"id": "1", "text": "x"}), Record(id="1", text="x")
    assert quick == slow
    assert hash(quick) == hash(slow)
    assert repr(quick) == repr(slow)
    assert dataclasses.replace(quick, user="ann") == Record(id="1", user="ann", text="x")
    assert (quick.kind, quick.owner, quick.scored_text) == ("text", "1", "x")


def test_the_three_kinds():
    pair = Record(id="1", user="ann", source="a", target="b")
    assert (pair.kind, pair.owner, pair.scored_text) == ("pair", "ann", "b")
    assert Record(id="1", text="x", label=0).kind == "labelled"
    assert Record(id="1", array=np.zeros(2), label=0).scored_text == ""
