"""A causal model's answers equal those of one record at a time, read whole, in double precision."""

import numpy as np
import pytest
import torch

from recollect.corpora.record import Record
from recollect.models.architectures import RecurrentConfig, RecurrentLM
from recollect.models.hugging_face.causal import Causal
from recollect.models.loading.pretrained import Pretrained, settle_network
from recollect.models.model import Model, Question
from recollect.streams import stream
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, build_tiny_tokenizer

FAMILIES = ["gpt2", "llama", "gemma2", "opt", "mamba"]
STARTS = {"llama": [1], "gemma2": [1], "opt": [2]}
"""The token that the tokenizer puts before a text."""


def twin(logits_alone, pretrained, record, *, before, window):
    """(logits, token) of every predicted token: a window slides by half its width, new tokens are scored."""
    tokens = pretrained.tokenizer(record.text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    whole = [*before, *tokens]
    found, begin, done = [], 0, max(1, len(before))
    while done < len(whole):
        end = len(whole) - 1 if window is None else min(begin + window, len(whole) - 1)
        logits = logits_alone(pretrained.network, input_ids=whole[begin:end])
        found += [(logits[place - 1 - begin], whole[place]) for place in range(done, end + 1)]
        begin, done = begin + (window or 0) // 2, end + 1
    return found


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_equal_the_twin(family, precision, ragged, logits_alone, assert_numbers):
    pretrained = build_tiny_model(family, precision=precision)
    answers = Causal(pretrained, Question(precision=precision)).answer(ragged)
    window = None if family == "mamba" else 64
    exact = precision == "float64" and family != "mamba"  # which rounds its logits to single precision itself
    for record in ragged:
        expected = twin(logits_alone, pretrained, record, before=STARTS.get(family, []), window=window)
        rows = answers.get_rows(record.digest)
        assert_numbers(answers, range(rows.start, rows.stop), expected, exact_ranks=exact)
    assert answers.logprob.dtype == np.dtype(precision)


@pytest.mark.parametrize("window", [2, 5, 16])
def test_a_window_may_be_narrower_than_the_model_s(window, ragged, logits_alone, assert_numbers):
    pretrained = build_tiny_model("gpt2", precision="float64")
    records = [record for record in ragged if len(record.text) <= 10 * window]
    answers = Causal(pretrained, Question(window=window, precision="float64")).answer(records)
    assert max(np.diff(answers.offsets)) > window
    for record in records:
        rows = answers.get_rows(record.digest)
        expected = twin(logits_alone, pretrained, record, before=[], window=window)
        assert_numbers(answers, range(rows.start, rows.stop), expected, exact_ranks=True)


def recurrent():
    """A small recurrent model of our own."""
    tokenizer = build_tiny_tokenizer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = RecurrentLM(RecurrentConfig(vocab_size=len(tokenizer), embedding=16, units=24, layers=2))
    network = settle_network(network, "float64", torch.device("cpu"))
    return Pretrained(name="recurrent", network=network, tokenizer=tokenizer, digest="0" * 32)


def test_a_recurrent_model_reads_a_text_of_any_length_in_one_pass(ragged, logits_alone, assert_numbers):
    pretrained = recurrent()
    answers = Causal(pretrained, Question(precision="float64")).answer(ragged)
    for record in ragged:
        rows = answers.get_rows(record.digest)
        expected = twin(logits_alone, pretrained, record, before=[], window=None)
        assert_numbers(answers, range(rows.start, rows.stop), expected, exact_ranks=True)


@pytest.mark.parametrize("family", ["gpt2", "gemma2"])
@pytest.mark.parametrize("budget", [1, 333])
def test_batch_size_and_order_change_no_number(family, budget, ragged):
    model = Causal(build_tiny_model(family), Question())
    usual = model.answer(ragged)
    model.budget = budget
    shuffled = stream(budget, "order").permutation(np.array(ragged)).tolist()
    answers = model.answer(shuffled)
    assert answers.records == tuple(record.digest for record in shuffled)
    again = answers.select(usual.records)
    for name in ("offsets", "position", "start", "end", "known"):
        assert np.array_equal(getattr(again, name), getattr(usual, name))
    for name in ("logprob", "entropy", "logprob_std"):
        assert np.abs(getattr(again, name) - getattr(usual, name)).max() < 1e-4
    assert np.array_equal(again.rank, usual.rank)


def test_memory_that_runs_out_changes_no_number(ragged, monkeypatch):
    model = Causal(build_tiny_model("gpt2"), Question())
    usual = model.answer(ragged)
    forward = model._passes._network.forward

    def scarce(input_ids, **others):
        if input_ids.numel() > 150:
            raise torch.OutOfMemoryError("out of memory")
        return forward(input_ids=input_ids, **others)

    monkeypatch.setattr(model._passes._network, "forward", scarce)
    answers = model.answer(ragged)
    assert model.budget <= 150
    assert np.abs(answers.logprob - usual.logprob).max() < 1e-4


def test_the_first_token_is_predicted_only_after_a_token_it_was_trained_with():
    record = Record(id="a", text="again and again")
    gpt2 = build_tiny_model("gpt2")
    tokens = len(gpt2.tokenizer(record.text)["input_ids"])
    assert Causal(gpt2, Question()).answer([record]).position.tolist() == list(range(1, tokens))
    for named in ("<s>", 1):
        started = Causal(build_tiny_model("gpt2", card={"start_symbol": named}), Question()).answer([record])
        assert started.position.tolist() == list(range(tokens))
    assert Causal(build_tiny_model("llama"), Question()).answer([record]).position.tolist() == list(range(tokens))


def test_a_start_token_on_the_card_stands_before_the_text(ragged, logits_alone, assert_numbers):
    pretrained = build_tiny_model("gpt2", card={"start_symbol": "</s>"}, precision="float64")
    answers = Causal(pretrained, Question(precision="float64")).answer(ragged)
    for record in ragged:
        rows = answers.get_rows(record.digest)
        expected = twin(logits_alone, pretrained, record, before=[2], window=64)
        assert_numbers(answers, range(rows.start, rows.stop), expected, exact_ranks=True)


@pytest.mark.parametrize("named", ["<begin>", 400, -1])
def test_an_unknown_start_token_is_an_error(named):
    with refused("unknown_start_token"):
        Causal(build_tiny_model("gpt2", card={"start_symbol": named}), Question())


def test_special_tokens_written_in_a_text_are_text():
    record = Record(id="a", text="a</s>b<s>c<pad>")
    answers = Causal(build_tiny_model("llama"), Question()).answer([record])
    said = [record.text[begin:end] for begin, end in zip(answers.start, answers.end, strict=True)]
    assert said == list("a</s>b<s>c<pad>")
    assert answers.known.all()


def test_rows_say_where_in_the_text_a_token_stands(ragged):
    answers = Causal(build_tiny_model("llama"), Question()).answer(ragged)
    for record, starts, ends in zip(ragged, answers.iter_column("start"), answers.iter_column("end"), strict=True):
        covered = {place for begin, end in zip(starts, ends, strict=True) for place in range(begin, end)}
        assert covered == set(range(len(record.text)))


def test_words_outside_the_vocabulary_are_marked():
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    unknown = {"unk_token": "<unk>"}
    backend = Tokenizer(models.WordLevel({"<unk>": 0, "the": 1, "dog": 2}, **unknown))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words = PreTrainedTokenizerFast(tokenizer_object=backend, **unknown)
    pretrained = build_tiny_model("gpt2")
    model = Causal(Pretrained(name="m", network=pretrained.network, tokenizer=words, digest="0" * 32), Question())
    answers = model.answer([Record(id="a", text="the cat dog")])
    assert answers.known.tolist() == [False, True]
    assert words.pad_token is None  # and yet texts of two lengths are padded
    assert len(model.answer([Record(id="a", text="the dog"), Record(id="b", text="the dog dog the")])) == 2


def test_a_record_asked_twice_is_answered_once():
    twice = [Record(id="a", text="again"), Record(id="b", text="dog"), Record(id="c", text="again")]
    answers = Causal(build_tiny_model("gpt2"), Question()).answer(twice)
    assert answers.records == (twice[0].digest, twice[1].digest)


def test_nothing_asked_nothing_answered():
    model = Causal(build_tiny_model("gpt2"), Question())
    assert model.answer([]).rows == 0
    assert model.answer([Record(id="a", text="")]).offsets.tolist() == [0, 0]
    assert isinstance(model, Model)


def test_a_record_without_a_text_is_refused():
    with refused("record_without_text"):
        Causal(build_tiny_model("gpt2"), Question()).answer([Record(id="x", array=np.zeros(3), label=1)])


def test_a_model_that_looks_ahead_is_refused():
    with refused("looks_ahead"):
        Causal(build_tiny_model("bert"), Question())


def test_a_long_document_is_one_record_whose_tokens_are_each_scored_once():
    model = Causal(build_tiny_model("gpt2"), Question(window=32))
    record = Record(id="long", text=" ".join(f"word{i % 97} and {i}" for i in range(400)))
    answers = model.answer([record])
    assert answers.records == (record.digest,)
    assert answers.rows > 4_000 / 2
    assert answers.position.tolist() == list(range(answers.position[0], answers.position[0] + answers.rows))
    assert np.isfinite(answers.logprob).all()
