"""Recorded models: a store answers in the model's place, also one with answers computed elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.access import Access
from recollect.models.answer_store.recorded_model import load_recording, write_recording
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.answers import Answers
from recollect.models.limited import limited, weaken
from recollect.models.model import Model
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.refusals import refused

RECORDS = [Record(id=str(i), text=f"note {i} about patient {i % 4}") for i in range(30)]
MODEL = Memoriser(RECORDS[:10])


def test_a_recorded_model_answers_as_the_model_did(tmp_path):
    model = load_recording(score_corpus(MODEL, Corpus.of(RECORDS), tmp_path).folder)
    assert isinstance(model, Model)
    assert model.name == f"recorded:{tmp_path / 'answers'}/{model.store.folder.name}"
    assert (model.kind, model.digest, model.question) == (MODEL.kind, MODEL.digest, MODEL.question)
    assert model.access == Access.PROBABILITIES
    assert np.array_equal(model.answer(RECORDS[::-1]).logprob, MODEL.answer(RECORDS[::-1]).logprob)


def test_a_recorded_model_has_no_steps_whatever_the_model_had(tmp_path):
    model = load_recording(score_corpus(Null(access=Access.FULL), Corpus.of(RECORDS), tmp_path).folder)
    assert model.access == Access.PROBABILITIES


def test_records_it_was_never_asked_about_are_counted_and_named(tmp_path):
    model = load_recording(score_corpus(MODEL, Corpus.of(RECORDS[:20]), tmp_path).folder)
    with refused("not_recorded") as refusal:
        model.answer(RECORDS)
    for named in ("10 of 30", "'20'"):
        assert named in refusal.error.found
    with refused("not_recorded"):
        score_corpus(model, Corpus.of(RECORDS), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_asking_a_recorded_model_copies_nothing(tmp_path):
    model = load_recording(score_corpus(MODEL, Corpus.of(RECORDS), tmp_path).folder)
    store = score_corpus(model, Corpus.of(RECORDS[5:8]), tmp_path / "other")
    assert store.folder == model.store.folder
    weak = score_corpus(limited(model, Access.top(2)), Corpus.of(RECORDS), tmp_path / "other")
    assert np.array_equal(weak.get_answers(RECORDS).rank, weaken(MODEL.answer(RECORDS), Access.top(2)).rank)
    assert not (tmp_path / "other").exists()


def test_answers_computed_elsewhere_can_be_brought(tmp_path):
    access = Access(k=50, logprob="shown", distribution=False, steps=True)
    elsewhere = (weaken(MODEL.answer(RECORDS[i : i + 7]), access) for i in range(0, 30, 7))
    store = write_recording(elsewhere, tmp_path / "store", name="their model", kind="causal", access=access)
    model = load_recording(tmp_path / "store")
    assert model.access == replace(access, steps=False) == store.access
    expected = weaken(MODEL.answer(RECORDS), access)
    found = model.answer(RECORDS)
    assert np.array_equal(found.logprob, expected.logprob, equal_nan=True)
    assert np.array_equal(found.rank, expected.rank)
    with refused("store_exists"):
        write_recording([expected], tmp_path / "store", name="their model", kind="causal", access=access)


GOOD = MODEL.answer(RECORDS[:3])
FAULTS: list[tuple[str, str, Answers]] = [
    ("column_missing", "logprob", replace(GOOD, logprob=None)),
    ("column_missing", "entropy", replace(GOOD, entropy=None)),
    ("logprob_above_zero", "", replace(GOOD, logprob=-GOOD.logprob)),
    ("logprob_missing", "", replace(GOOD, logprob=np.full_like(GOOD.logprob, np.nan))),
    ("rank_not_shown", "", replace(GOOD, rank=GOOD.rank * 0)),
    ("column_length", "rank has 2 rows instead of 15", replace(GOOD, rank=GOOD.rank[:2])),
    ("offsets_misfit", "", replace(GOOD, offsets=GOOD.offsets[:-1])),
    ("record_twice", "", replace(GOOD, records=(GOOD.records[0],) * 3)),
    ("not_a_digest", "", replace(GOOD, records=("one", "two", "three"))),
    ("token_ends_before_it_begins", "", replace(GOOD, start=GOOD.end, end=GOOD.start)),
    ("entropy_negative", "", replace(GOOD, logprob_std=GOOD.logprob_std - 100)),
]


@pytest.mark.parametrize(
    ("code", "named", "answers"), FAULTS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_answers_that_contradict_themselves_are_refused_and_leave_no_store(code, named, answers, tmp_path):
    with refused(code) as refusal:
        write_recording([answers], tmp_path, name="theirs", kind="causal", access=Access.PROBABILITIES)
    assert named in refusal.error.found
    with refused("no_answer_store"):
        load_recording(tmp_path)


def test_answers_with_more_than_the_access_shows_are_refused(tmp_path):
    bare = replace(MODEL.answer(RECORDS), logprob=None, entropy=None, logprob_std=None)
    for access, answers, code in [
        (Access.RANKS, MODEL.answer(RECORDS), "column_not_shown"),
        (Access.top(1), MODEL.answer(RECORDS), "column_not_shown"),
        (Access.top(1), bare, "rank_not_shown"),
    ]:
        with refused(code):
            write_recording([answers], tmp_path, name="theirs", kind="causal", access=access)
