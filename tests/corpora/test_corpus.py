from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora import Corpus, Record, read_corpus
from recollect.errors import CorpusError, PlanError
from recollect.testing.refusals import refused

names = st.sampled_from(["ann", "bob", "cid", ""])


def corpus(*users: str | None) -> Corpus:
    return Corpus.of(Record(id=str(i), user=user, text=f"text {i}") for i, user in enumerate(users))


@settings(deadline=None)
@given(users=st.lists(names))
def test_the_summary_counts_records_and_users(users):
    summary = corpus(*users).summary
    assert (summary.size, summary.users) == (len(users), len(set(users)))


def test_the_digest_depends_on_ids_users_contents_and_order_alone():
    one = Corpus.of([Record(id="1", text="x"), Record(id="2", text="y")], name="one")
    assert one.digest == Corpus.of(list(one), name="other").digest
    changed = [
        [Record(id="2", text="y"), Record(id="1", text="x")],
        [Record(id="1", text="x"), Record(id="3", text="y")],
        [Record(id="1", text="x"), Record(id="2", text="z")],
        [Record(id="1", text="x"), Record(id="2", user="ann", text="y")],
        [Record(id="1", text="x"), Record(id="2", text="y", label=1)],
        [Record(id="1", text="x")],
    ]
    assert len({one.digest, *(Corpus.of(records).digest for records in changed)}) == 7
    assert Corpus.of([Record(id="1", user="None", text="x")]).digest != Corpus.of([Record(id="1", text="x")]).digest


def test_users_and_records_are_picked_in_the_order_of_the_corpus():
    whole = corpus("ann", "bob", "ann", "cid")
    assert [r.id for r in whole.select_users(["cid", "ann"])] == ["0", "2", "3"]
    assert [r.id for r in whole.select_records(["3", "1"])] == ["1", "3"]
    assert [r.id for r in corpus(None, None).select_users(["1"])] == ["1"]
    assert [r.id for r in whole.filter(lambda record: record.id > "1", name="late")] == ["2", "3"]


def test_a_corpus_can_be_handed_to_a_worker_process(write):
    read = read_corpus(write("a.csv", "text,user\nx,ann\ny,bob\n")).select_users(["bob"])
    for whole in (read, corpus("ann", "bob")):
        again = pickle.loads(pickle.dumps(whole))  # noqa: S301 - between processes, never a file
        assert list(again) == list(whole)
        assert again.digest == whole.digest


@settings(deadline=None)
@given(count=st.integers(0, 30), rows=st.integers(1, 12))
def test_batches_hold_every_record_once_and_in_order(count, rows):
    whole = corpus(*["ann"] * count)
    batches = list(whole.iter_batches(rows))
    assert all(batch.num_rows == rows for batch in batches[:-1])
    held = [row for batch in batches for row in batch.to_pylist()]
    assert [(row["id"], row["user"], row["text"], row["label"]) for row in held] == [
        (r.id, r.user, r.text, r.label) for r in whole
    ]


def test_all_batches_have_one_schema_with_every_column():
    pairs = Corpus.of([Record(id="1", source="a", target="b")] * 3)
    schemas = {batch.schema.to_string() for batch in pairs.iter_batches(2)}
    assert len(schemas) == 1
    assert next(pairs.iter_batches(1)).schema.names == ["id", "user", "text", "source", "target", "label"]


def test_labels_and_arrays_keep_their_types_in_batches():
    images = Corpus.of(Record(id=str(i), array=np.full((2, 3), i, np.uint8), label=i) for i in range(3))
    first = next(images.iter_batches(8))
    assert np.array_equal(first.column("array").to_numpy_ndarray(), np.stack([r.array for r in images]))
    assert first.column("label").to_pylist() == [0, 1, 2]
    named = Corpus.of([Record(id="1", text="x", label="cat")])
    assert next(named.iter_batches(8)).column("label").to_pylist() == ["cat"]


def test_batches_of_a_mixture_are_refused():
    mixed = Corpus.of([Record(id="1", text="x", label=1), Record(id="2", text="y", label="one")])
    with refused("mixed_records", CorpusError):
        list(mixed.iter_batches())
    shapes = Corpus.of(Record(id=str(n), array=np.zeros(n), label=0) for n in (1, 2))
    with refused("mixed_records", CorpusError):
        list(shapes.iter_batches())
    with refused("out_of_range", PlanError):
        list(mixed.iter_batches(0))
