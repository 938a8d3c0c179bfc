"""A seq2seq model's answers equal those of one pair at a time, read whole, in double precision."""

import numpy as np
import pytest

from recollect.corpora.record import Record
from recollect.models.hugging_face.seq2seq import Seq2Seq
from recollect.models.model import Model, Question
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model

SHORT = 60
"""Letters of a text that every tiny model can read."""


@pytest.fixture
def pairs(ragged):
    """Every text as the source of the next one."""
    texts = [record.text[:SHORT] for record in ragged if len(record.text.encode()) <= 2 * SHORT]
    return [Record(id=f"p{i}", source=texts[i - 1], target=text) for i, text in enumerate(texts)]


def twin(logits_alone, pretrained, record):
    """(logits, token) of every ordinary token of the target: whole source, whole target, teacher forcing."""
    tokenizer, network = pretrained.tokenizer, pretrained.network
    source = tokenizer(record.source, split_special_tokens=True)["input_ids"]
    labels = tokenizer(record.target, split_special_tokens=True)["input_ids"]
    shown = [network.config.decoder_start_token_id, *labels[:-1]]
    logits = logits_alone(network, input_ids=source, decoder_input_ids=shown)
    ordinary = range(len(labels))[1:-1] if labels[0] == tokenizer.bos_token_id else range(len(labels))[:-1]
    return [(logits[place], labels[place]) for place in ordinary]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("family", ["t5", "bart"])
def test_answers_equal_the_twin(family, precision, pairs, logits_alone, assert_numbers):
    pretrained = build_tiny_model(family, window=130, precision=precision)
    answers = Seq2Seq(pretrained, Question(precision=precision)).answer(pairs)
    for record in pairs:
        rows = answers.get_rows(record.digest)
        expected = twin(logits_alone, pretrained, record)
        assert_numbers(answers, range(rows.start, rows.stop), expected, exact_ranks=precision == "float64")


@pytest.mark.parametrize("family", ["t5", "bart"])
@pytest.mark.parametrize("budget", [1, 64, 500])
def test_batch_size_and_order_change_no_number(family, budget, pairs):
    model = Seq2Seq(build_tiny_model(family, window=130), Question())
    usual = model.answer(pairs)
    model.budget = budget
    again = model.answer(pairs[::-1]).select(usual.records)
    for name in ("logprob", "entropy", "logprob_std"):
        assert np.abs(getattr(again, name) - getattr(usual, name)).max() < 1e-4
    assert np.array_equal(again.rank, usual.rank)
    assert np.array_equal(again.position, usual.position)


def test_every_token_of_the_target_is_counted_and_no_other():
    pretrained = build_tiny_model("bart")
    record = Record(id="a", source="the lazy dog", target="again</s> and")
    answers = Seq2Seq(pretrained, Question()).answer([record])
    said = "".join(record.target[begin:end] for begin, end in zip(answers.start, answers.end, strict=True))
    assert said == record.target
    assert answers.position.tolist() == list(range(answers.rows))


@pytest.mark.parametrize(("part", "size"), [("source", 66), ("target", 65)])
def test_what_is_too_long_is_refused_by_name_and_limit(part, size):
    pair = {"source": "b", "target": "b", part: "b" * 64}
    model = Seq2Seq(build_tiny_model("bart", window=64), Question())
    with refused("text_too_long") as refusal:
        model.answer([Record(id="fine", source="a", target="b"), Record(id="long", **pair)])
    for named in (part, "'long'", str(size), "64"):
        assert named in refusal.error.found


def test_the_longest_that_can_be_read_is_read():
    model = Seq2Seq(build_tiny_model("bart", window=64), Question())
    answers = model.answer([Record(id="a", source="b" * 62, target="b" * 63)])
    assert answers.rows == 63


def test_relative_positions_know_no_limit():
    model = Seq2Seq(build_tiny_model("t5", window=64), Question())
    assert model.answer([Record(id="a", source="b" * 200, target="b" * 200)]).rows == 200


def test_an_empty_target_has_no_rows_and_a_pair_asked_twice_is_answered_once():
    model = Seq2Seq(build_tiny_model("t5"), Question())
    records = [Record(id="a", source="x", target=""), Record(id="b", source="", target="y")]
    answers = model.answer([*records, *records])
    assert answers.records == tuple(record.digest for record in records)
    assert answers.offsets.tolist() == [0, 0, 1]
    assert model.answer([]).rows == 0
    assert isinstance(model, Model)


def test_a_record_that_is_no_pair_is_refused():
    with refused("record_without_pair"):
        Seq2Seq(build_tiny_model("t5"), Question()).answer([Record(id="x", text="a")])


def test_a_decoder_without_a_start_is_refused():
    pretrained = build_tiny_model("t5")
    pretrained.network.config.decoder_start_token_id = None
    pretrained.network.generation_config.decoder_start_token_id = None
    with refused("no_decoder_start"):
        Seq2Seq(pretrained, Question())
