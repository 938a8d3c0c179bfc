"""The answer store: what goes in comes out, by digest, in bounded memory; what is damaged is said to be."""

from __future__ import annotations

import stat
import threading
import time
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.digests import new_hasher
from recollect.errors import RecollectWarning, StoreError
from recollect.files import hold_lock, read_json, write_checked_json, write_json
from recollect.models.access import Access
from recollect.models.answer_store.manifest import Manifest
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.answer_store.shards import (
    build_empty_shard,
    pack_shard_digests,
    read_record_digests,
    read_shard,
    write_shard,
)
from recollect.models.answer_store.store import AnswerStore, split_by_length
from recollect.models.answers import Answers
from recollect.models.limited import weaken
from recollect.models.model import Question, compute_address
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.refusals import refused

RECORDS = [Record(id=str(i), text=f"record {i} says {'very ' * (i % 5)}little") for i in range(50)]
COLUMNS = ("pattern", "position", "start", "end", "known", "rank", "logprob", "entropy", "spread", "logits")
FIELDS = tuple("logprob_std" if name == "spread" else name for name in COLUMNS)
DIGEST = "0" * 32


def equal(one: Answers, other: Answers) -> bool:
    """Whether two answers hold the same in the same order and in the same types."""
    columns = [(getattr(one, name), getattr(other, name)) for name in ("offsets", *FIELDS)]
    same = all(
        a is b if a is None or b is None else a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for a, b in columns
    )
    return same and one.records == other.records


@pytest.fixture
def store(tmp_path) -> AnswerStore:
    """A store of fifty records in shards of eight."""
    return score_corpus(Null(), Corpus.of(RECORDS), tmp_path, block=8)


def digest_of(number: int) -> str:
    state = new_hasher()
    state.update(str(number).encode())
    return state.hexdigest()


@st.composite
def any_answers(draw):
    """Answers of any shape a model could give, with and without each column."""
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=6))
    rows = sum(lengths)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    double = draw(st.booleans())
    real = np.float64 if double else np.float32
    logprob = -rng.exponential(3, rows).astype(real)
    logprob[rng.random(rows) < 0.3] = np.nan
    integers = {name: rng.integers(0, 2**31 - 1, rows, dtype=np.int32) for name in ("pattern", "position", "rank")}
    places = {name: rng.integers(0, 2**31 - 1, rows, dtype=np.int32) for name in ("start", "end")}
    answers = Answers(
        records=tuple(digest_of(i) for i in range(len(lengths))),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        known=rng.random(rows) < 0.5,
        logprob=draw(st.sampled_from([None, logprob])),
        entropy=draw(st.sampled_from([None, rng.random(rows).astype(real)])),
        logprob_std=draw(st.sampled_from([None, rng.random(rows).astype(real)])),
        logits=draw(st.sampled_from([None, rng.normal(size=(rows, 3)).astype(real)])),
        **integers,
        **places,
    )
    return answers, double


@settings(deadline=None, max_examples=60)
@given(made=any_answers())
def test_a_shard_gives_back_what_was_written_and_the_same_bytes_each_time(made, tmp_path_factory):
    answers, double = made
    folder = tmp_path_factory.mktemp("shard")
    path = write_shard(folder, DIGEST, answers, double=double)
    assert equal(read_shard(path, DIGEST), answers)
    assert read_record_digests(path, DIGEST).tolist() == pack_shard_digests(answers.records).tolist()
    before = path.read_bytes()
    assert write_shard(folder, DIGEST, answers, double=double) == path
    assert path.read_bytes() == before
    assert [child.name for child in folder.iterdir()] == [path.name]


def test_single_precision_is_kept_unless_the_model_computes_in_double(tmp_path):
    for precision, kind in {"float32": np.float32, "float64": np.float64, "float16": np.float32}.items():
        model = Null(question=Question(precision=precision), name=precision)
        store = score_corpus(model, Corpus.of(RECORDS[:3]), tmp_path)
        assert store.get_answers(RECORDS[:3]).logprob.dtype == kind


def test_answers_come_back_by_digest_in_the_order_asked(store):
    some = [RECORDS[i] for i in (40, 3, 17, 3, 8, 49)]
    assert equal(store.get_answers(some), Null().answer([RECORDS[i] for i in (40, 3, 17, 8, 49)]))
    assert len(store) == 50
    assert RECORDS[7] in store
    assert Record(id="7", text="never asked") not in store


def test_reading_in_blocks_joins_every_record_with_its_own_answers(store):
    blocks = list(store.iter_blocks(iter(RECORDS)))
    assert [record.id for records, _ in blocks for record in records] == [record.id for record in RECORDS]
    for records, answers in blocks:
        assert len(records) <= 8
        assert equal(answers, Null().answer(records))


def test_iterating_gives_every_record_once_though_two_shards_hold_it(store):
    write_shard(store.folder, store.manifest.address, Null().answer(RECORDS[3:6]))
    again = AnswerStore.open(store.folder)
    found = [record for part in again for record in part.records]
    assert sorted(found) == sorted(record.digest for record in RECORDS)
    assert len(again) == 50


def test_nothing_asked_gives_nothing(store):
    assert equal(store.get_answers([]), build_empty_shard())
    assert list(store.iter_blocks([])) == []


def test_a_store_is_read_as_weakly_as_wanted(store):
    access = Access(k=3, logprob="shown", distribution=False, steps=False)
    weak = store.limited(access, min_probability=0.05)
    expected = weaken(Null().answer(RECORDS), access, min_probability=0.05)
    assert weak.access == access
    assert equal(weak.get_answers(RECORDS), expected)
    assert equal(Answers.concatenate(list(weak)).select(expected.records), expected)
    assert weak.limited(Access.PROBABILITIES).access == access, "what was lowered stays low"
    assert weak.limited(Access.LABEL).min_probability == 0.05


def test_records_that_were_never_asked_are_counted_and_named(store):
    with refused("not_scored") as refusal:
        store.get_answers([RECORDS[0], Record(id="x", text="new"), Record(id="y", text="newer")])
    assert "2 of 3" in refusal.error.found
    assert "'x'" in refusal.error.found


def test_the_folder_and_all_files_are_the_owners_only(store):
    for path in [store.folder, *store.folder.iterdir()]:
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077


def test_one_row_per_record_and_one_list_per_column(store):
    tables = [pq.read_table(path) for path in sorted(store.folder.glob("*.parquet"))]
    assert sum(table.num_rows for table in tables) == 50
    assert [name for name in tables[0].column_names if name != "record"] == list(COLUMNS[:-1])


def test_the_manifest_holds_all_that_answers_depend_on_and_no_times(store):
    written = read_json(store.folder / "manifest.json")
    model = Null()
    assert store.folder.name == written["address"] == compute_address(model)
    assert (written["digest"], written["kind"], written["block"]) == (model.digest, "causal", 8)
    assert written["question"]["mask_seed"] == 0
    assert {"torch", "numpy", "pyarrow", "recollect"} <= set(written["versions"])
    assert not [key for key in written if "time" in key or "date" in key]
    assert Manifest.read(store.folder) == store.manifest


@pytest.mark.parametrize("how", ["cut", "flipped", "emptied", "text", "renamed", "from elsewhere"])
def test_a_damaged_or_foreign_shard_is_named_and_said_to_be_deleted(store, tmp_path, how):
    path = sorted(store.folder.glob("*.parquet"))[2]
    data = path.read_bytes()
    if how == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif how == "flipped":
        path.write_bytes(data[:100] + bytes(byte ^ 0xFF for byte in data[100:150]) + data[150:])
    elif how == "emptied":
        path.write_bytes(b"")
    elif how == "text":
        path.write_text("not Parquet at all, though long enough to be")
    elif how == "renamed":
        path = path.rename(path.with_name("f" * 32 + ".parquet"))
    else:
        other = score_corpus(Null(seed=1), Corpus.of(RECORDS), tmp_path, block=8)
        path = store.folder / sorted(other.folder.glob("*.parquet"))[0].name
        path.write_bytes((other.folder / path.name).read_bytes())
    with refused("shard_damaged") as refusal:
        AnswerStore.open(store.folder).get_answers(RECORDS)
    assert str(path) in refusal.error.found
    path.unlink()
    healed = score_corpus(Null(), Corpus.of(RECORDS), tmp_path, block=8)
    assert equal(healed.get_answers(RECORDS), Null().answer(RECORDS))


def test_no_flipped_bit_makes_a_wrong_number(tmp_path):
    model, records = Null(kind="classifier", vocabulary=4), [Record(id=str(i), text="a", label=i) for i in range(4)]
    answers = model.answer(records)
    path = write_shard(tmp_path, DIGEST, answers)
    data = path.read_bytes()
    noticed = 0
    for place in range(4, len(data), 11):
        path.write_bytes(data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :])
        try:
            assert equal(read_shard(path, DIGEST), answers)
        except StoreError:
            noticed += 1
    assert noticed > 50


def test_a_shard_that_others_have_changed_is_refused(store):
    path = sorted(store.folder.glob("*.parquet"))[0]
    table = pq.read_table(path)
    rank = table.column("rank").combine_chunks()
    shorter = rank.from_arrays([0] * len(rank) + [1], rank.values[:1])
    pq.write_table(table.set_column(table.column_names.index("start"), "start", shorter), path)
    with refused("shard_damaged"):
        AnswerStore.open(store.folder).get_answers(RECORDS)


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        ("gone", "no_answer_store"),
        ("cut", "manifest_damaged"),
        ("no question", "manifest_damaged"),
        ("unknown key", "manifest_damaged"),
        ("another number", "manifest_damaged"),
        ("format", "store_format"),
    ],
)
def test_a_damaged_manifest_is_said_to_be(store, damage, code):
    path = store.folder / "manifest.json"
    written = {key: value for key, value in read_json(path).items() if key != "checksum"}
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_text(path.read_text()[:40])
    elif damage == "no question":
        write_json(path, {key: value for key, value in written.items() if key != "question"})
    elif damage == "unknown key":
        write_checked_json(path, {**written, "surprise": 1})
    elif damage == "another number":
        path.write_text(path.read_text().replace('"block": ', '"block": 1'))
    else:
        write_checked_json(path, {**written, "format": 1})
    with refused(code):
        AnswerStore.open(store.folder)


def test_filling_clears_what_a_killed_run_left_and_nothing_else(store):
    (store.folder / ".half.parquet.ab12cd34.part").write_bytes(b"half")
    names = {path.name for path in store.folder.iterdir()} - {".half.parquet.ab12cd34.part"}
    with hold_lock(store.folder):
        assert {path.name for path in store.folder.iterdir()} == names


def test_a_second_run_waits_for_the_one_that_fills_the_store(tmp_path):
    order = []

    def first():
        with hold_lock(tmp_path, purpose="filling"):
            order.append("first begins")
            time.sleep(0.3)
            order.append("first ends")

    thread = threading.Thread(target=first)
    thread.start()
    while not order:
        time.sleep(0.01)
    with pytest.warns(RecollectWarning, match="Another run is filling"), hold_lock(tmp_path, purpose="filling"):
        order.append("second begins")
    thread.join()
    assert order == ["first begins", "first ends", "second begins"]


def test_a_classifiers_logits_and_a_masked_models_patterns_come_back(tmp_path):
    images = [Record(id=str(i), array=np.full((2, 2), i), label=i % 3) for i in range(5)]
    for model, records in [
        (Null(kind="classifier", vocabulary=3), images),
        (Null(kind="masked", question=Question(patterns=3)), RECORDS),
    ]:
        assert equal(score_corpus(model, Corpus.of(records), tmp_path).get_answers(records), model.answer(records))


def test_the_index_takes_twenty_bytes_per_record(store):
    index = store._index
    assert index.records.nbytes + index.shards.nbytes == 20 * len(store)


def test_models_that_differ_in_anything_have_stores_of_their_own(tmp_path):
    models = [Null(), Null(seed=1), Null(kind="masked"), Null(question=Question(mask_seed=1)), Memoriser(RECORDS[:1])]
    folders = {score_corpus(model, Corpus.of(RECORDS[:2]), tmp_path).folder for model in models}
    assert len(folders) == len(models)
    assert {folder.parent for folder in folders} == {tmp_path / "answers"}


def test_a_manifest_with_other_access_is_not_taken_for_ones_own(store, tmp_path):
    replace(store.manifest, access=Access.LABEL).write(store.folder)
    with refused("store_of_another_model"):
        score_corpus(Null(), Corpus.of(RECORDS), tmp_path)


def test_long_records_make_short_blocks_and_every_record_comes_once():
    lengths = [10, 10, 10, 95, 200, 10, 10, 10, 10]
    records = [Record(id=str(i), text=chr(97 + i) * length) for i, length in enumerate(lengths)]
    blocks = [[len(record.text) for record in block] for block in split_by_length(records, 4, 100)]
    assert blocks == [[10, 10, 10], [95], [200], [10, 10, 10, 10]]
    assert list(split_by_length([], 4)) == []
