"""The fakes: their numbers belong to a real distribution, and their truth is what they say it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora.record import Record
from recollect.errors import ModelError
from recollect.models.access import Access
from recollect.models.answer_store.soundness import refuse_unsound_answers
from recollect.models.model import Model, Question
from recollect.testing.fakes import (
    Memoriser,
    Null,
    Scripted,
    Uniform,
    predict_by_zipf,
    predict_label,
    predict_uniformly,
)

TEXTS = [Record(id=str(i), user=str(i % 3), text=f"the {i} cats of house {i} are out {i * i}") for i in range(20)]
PAIRS = [Record(id=str(i), source=f"où est {i}", target=f"where is {i}") for i in range(20)]
LABELLED = [Record(id=str(i), array=np.full((2, 2), i), label=i % 7) for i in range(20)]
CONTENTS = {"causal": TEXTS, "masked": TEXTS, "seq2seq": PAIRS, "classifier": LABELLED}


def spelt_out(p: float, vocabulary: int) -> np.ndarray:
    """The whole distribution, the true token first."""
    shares = 1 / np.arange(1, vocabulary)
    return np.concatenate([[p], (1 - p) * shares / shares.sum()])


@settings(deadline=None, max_examples=50)
@given(p=st.floats(1e-6, 1 - 1e-6), vocabulary=st.integers(2, 300))
def test_the_four_numbers_equal_those_of_the_distribution_spelt_out(p, vocabulary):
    whole = spelt_out(p, vocabulary)
    numbers = predict_by_zipf(np.array([p]), vocabulary)
    mean = (whole * np.log(whole)).sum()
    assert numbers.logprob[0] == pytest.approx(np.log(p))
    assert numbers.entropy[0] == pytest.approx(-mean, abs=1e-9)
    assert numbers.logprob_std[0] == pytest.approx(np.sqrt((whole * (np.log(whole) - mean) ** 2).sum()), abs=1e-6)
    clear = np.abs(whole[1:] - p) > 1e-12
    assert abs(numbers.rank[0] - (whole >= p).sum()) <= (~clear).sum()


@given(p=st.floats(1e-6, 1 - 1e-6), label=st.integers(0, 4))
def test_logits_of_classes_give_the_same_numbers(p, label):
    numbers = predict_label(p, label, 5)
    shown = np.exp(numbers.logits[0])
    assert shown.sum() == pytest.approx(1)
    assert shown[label] == pytest.approx(p)
    assert sorted(shown) == pytest.approx(sorted(spelt_out(p, 5)))


def test_a_uniform_model_ranks_everything_last_because_ties_count_against_it():
    numbers = predict_uniformly(2, 50)
    assert numbers.rank.tolist() == [50, 50]
    assert np.exp(numbers.logprob) == pytest.approx(1 / 50)
    assert numbers.entropy == pytest.approx(np.log(50))
    assert not numbers.logprob_std.any()


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("make", ["uniform", "null", "memoriser", "scripted"])
def test_every_fake_is_a_model_with_sound_answers(kind, make):
    records = CONTENTS[kind]
    null = Null(kind=kind, vocabulary=10)
    symbols = {r.id: [0.3] * (1 if kind == "classifier" else len(r.scored_text.split())) for r in records}
    model = {
        "uniform": Uniform(kind=kind, vocabulary=10),
        "null": null,
        "memoriser": Memoriser(records[:5], otherwise=null),
        "scripted": Scripted(symbols, otherwise=null),
    }[make]
    assert isinstance(model, Model)
    answers = model.answer(records)
    refuse_unsound_answers(answers, model.access, model=model.name)
    assert answers.records == tuple(record.digest for record in records)
    assert (answers.logits is not None) == (kind == "classifier")
    again = model.answer(records[::-1]).select(answers.records)
    assert np.array_equal(answers.logprob, again.logprob)


def test_words_are_found_where_they_stand():
    record = Record(id="a", text="  über \u2003 den\nBerg ")
    answers = Null().answer([record])
    words = [record.text[begin:end] for begin, end in zip(answers.start, answers.end, strict=True)]
    assert words == ["über", "den", "Berg"]


def test_a_masked_fake_has_one_row_per_hidden_word_and_the_same_patterns_for_all():
    question = Question(patterns=4, masked=0.3)
    one, other = (Null(kind="masked", question=question, seed=seed).answer(TEXTS[:1]) for seed in (1, 2))
    assert np.bincount(one.pattern).tolist() == [3] * 4  # ceil(0.3 × 9 words)
    assert np.array_equal(one.position, other.position)
    assert not np.array_equal(one.logprob, other.logprob)


def test_a_memoriser_knows_what_it_learnt_and_nothing_else():
    model = Memoriser(TEXTS[:10])
    answers = model.answer(TEXTS)
    means = np.array([row.mean() for row in answers.iter_column("logprob")])
    assert means[:10] == pytest.approx(np.log(0.99))
    assert means[10:].max() < -1
    assert all((row == 1).all() for row in list(answers.iter_column("rank"))[:10])
    assert Memoriser(TEXTS[:10]).digest == model.digest != Memoriser(TEXTS[:9]).digest


def test_null_models_find_the_same_words_hard_and_differ_randomly():
    one, other = (Null(seed=seed).answer(TEXTS).logprob for seed in (1, 2))
    assert 0.8 < np.corrcoef(one, other)[0, 1] < 0.999


def test_a_record_without_words_has_no_rows():
    answers = Null().answer([Record(id="a", text="  "), TEXTS[0]])
    assert np.diff(answers.offsets).tolist() == [0, 9]


def test_a_fake_shows_no_more_than_its_access():
    answers = Null(access=Access.top(3)).answer(TEXTS)
    assert answers.logprob is None
    assert answers.entropy is None
    assert answers.rank.max() <= 3


def test_a_script_that_does_not_fit_is_refused():
    with pytest.raises(ModelError, match="1 numbers for record '0', which has 9 tokens"):
        Scripted({"0": [0.5]}).answer(TEXTS[:1])
