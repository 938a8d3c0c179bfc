"""Masked models against a twin that reads one record and one pattern at a time and makes all logits in float64."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModelForMaskedLM, PreTrainedTokenizerFast

from recollect.corpora.record import Record
from recollect.models.access import Access
from recollect.models.answer_store.soundness import refuse_unsound_answers
from recollect.models.hugging_face.mask_patterns import count_patterns, draw_hidden, split_pattern_into_windows
from recollect.models.hugging_face.masked import Masked, MaskedRowSelector
from recollect.models.loading.pretrained import Pretrained
from recollect.models.model import Model, Question
from recollect.testing.refusals import refused
from recollect.testing.tiny import TEXTS, build_tiny_model

RAGGED = [*TEXTS, "a", "", "[MASK] [SEP] <mask> </s> <pad>", "Ωμέγα " * 3, "naïve café — “quoted” 1234", "ab " * 60]
RECORDS = [Record(id=str(i), text=text) for i, text in enumerate(RAGGED)]
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def wordpiece_tokenizer():
    """As BERT has it: accents and case dropped, much of the text unknown to it."""
    raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106
    raw.normalizer, raw.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=MARKS, show_progress=False)
    raw.train_from_iterator([*TEXTS[:2], "a b ab"] * 2, trainer)
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return PreTrainedTokenizerFast(tokenizer_object=raw, **dict(zip(names, MARKS, strict=True)))


def other_model(family: str, **sizes) -> Pretrained:
    """A model of a family whose output layer is made differently, with a WordPiece vocabulary."""
    tokenizer = wordpiece_tokenizer()
    marks = {"pad_token_id": 0, "bos_token_id": None, "eos_token_id": None, "cls_token_id": 2, "sep_token_id": 3}
    config = AutoConfig.for_model(family, vocab_size=len(tokenizer), max_position_embeddings=48, **marks, **sizes)
    torch.manual_seed(1)
    network = AutoModelForMaskedLM.from_config(config).eval()
    for weights in network.parameters():
        torch.nn.init.normal_(weights, std=0.3)
    return Pretrained(name=family, network=network, tokenizer=tokenizer, digest="0" * 32)


MODELS = {
    "bert": lambda: build_tiny_model("bert"),
    "roberta": lambda: build_tiny_model("roberta"),
    "bert-wordpiece": lambda: other_model(
        "bert", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
    ),
    "distilbert": lambda: other_model("distilbert", dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    "modernbert": lambda: other_model(
        "modernbert",
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        local_attention=8,
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def pretrained(request):
    return MODELS[request.param]()


def in_double(pretrained: Pretrained) -> Pretrained:
    return replace(pretrained, network=copy.deepcopy(pretrained.network).double())


def twin(pretrained: Pretrained, record: Record, question: Question, width: int):
    """(pattern, place, token, logits over the vocabulary), pattern after pattern, one window at a time."""
    tokenizer, network = pretrained.tokenizer, in_double(pretrained).network
    whole = tokenizer(record.text, split_special_tokens=True)["input_ids"]
    first, ids, last = whole[0], whole[1:-1], whole[-1]
    for pattern in range(count_patterns(len(ids), question)):
        places = draw_hidden(record.digest, len(ids), pattern, question)
        covered = [tokenizer.mask_token_id if i in places else symbol for i, symbol in enumerate(ids)]
        windows = (
            [[0, len(ids), 0, len(places)]]
            if len(ids) <= width
            else split_pattern_into_windows(places, len(ids), width).tolist()
        )
        for begin, end, one, other in windows:
            with torch.no_grad():
                logits = network(input_ids=torch.tensor([[first, *covered[begin:end], last]])).logits[0]
            for place in places[one:other].tolist():
                yield pattern, place, ids[place], logits[1 + place - begin].numpy()


@pytest.fixture
def equals_twin(assert_numbers):
    """A function: asks a model about the ragged texts and compares every row with the twin's."""

    def check(model: Masked, pretrained: Pretrained, *, exact_ranks: bool = False):
        answers = model.answer(RECORDS)
        refuse_unsound_answers(answers, model.access, model=model.name)
        assert answers.records == tuple(record.digest for record in RECORDS)
        for record in RECORDS:
            rows = answers.get_rows(record.digest)
            expected = list(twin(pretrained, record, model.question, model._width))
            assert answers.pattern[rows].tolist() == [pattern for pattern, *_ in expected]
            assert answers.position[rows].tolist() == [place for _, place, *_ in expected]
            numbers = [(logits, symbol) for _, _, symbol, logits in expected]
            assert_numbers(answers, range(rows.start, rows.stop), numbers, exact_ranks=exact_ranks)

    return check


@pytest.mark.parametrize("one_by_one", [False, True], ids=["random", "one-by-one"])
def test_numbers_equal_the_twins_on_ragged_texts_in_many_scripts(pretrained, one_by_one, equals_twin):
    equals_twin(Masked(pretrained, Question(patterns=3, one_by_one=one_by_one)), pretrained)


def test_ranks_equal_the_twins_exactly_in_double_precision(pretrained, equals_twin):
    model = Masked(in_double(pretrained), Question(patterns=3, precision="float64"))
    equals_twin(model, pretrained, exact_ranks=True)


def test_short_windows_are_read_like_the_twins(equals_twin):
    pretrained = build_tiny_model("roberta")
    model = Masked(pretrained, Question(patterns=2, window=12))
    assert model._width == 10
    equals_twin(model, pretrained)


def test_the_full_logits_are_never_made(pretrained):
    assert Masked(pretrained, Question())._reader.skips_full_logits


@pytest.mark.parametrize(
    ("name", "ending"),
    [("bert", "attention"), ("roberta", "attention"), ("distilbert", "sa_layer_norm"), ("modernbert", None)],
)
def test_the_end_of_the_encoder_sees_only_what_is_requested_where_it_can_be_told(name, ending):
    network = MODELS[name]().network
    found = MaskedRowSelector(network)._module
    named = {id(module): path.rpartition(".")[2] for path, module in network.named_modules()}
    assert (None if found is None else named[id(found)]) == ending


def test_an_end_that_gives_other_numbers_is_not_believed():
    network = build_tiny_model("bert").network
    last = network.bert.encoder.layer[-1]
    whole = last.forward
    # a layer in which places still look at each other after its attention
    last.forward = lambda *inputs, **named: whole(*inputs, **named).cumsum(1)
    assert MaskedRowSelector(network)._module is None


def test_batch_size_order_and_company_move_nothing(pretrained):
    model = Masked(pretrained, Question(patterns=4))
    model.budget = 8192
    together = model.answer(RECORDS)
    for budget, records in ((1, RECORDS), (100, RECORDS[::-1]), (300, RECORDS[3:7])):
        model.budget = budget
        apart = model.answer(records)
        assert apart.records == tuple(record.digest for record in records)
        same = together.select(apart.records)
        for column in ("offsets", "pattern", "position", "start", "end", "known"):
            assert np.array_equal(getattr(apart, column), getattr(same, column))
        for column in ("logprob", "entropy", "logprob_std"):
            np.testing.assert_allclose(getattr(apart, column), getattr(same, column), atol=1e-4)


def test_the_same_places_are_hidden_from_every_model_with_the_same_tokenizer():
    question = Question(patterns=5)
    one, other = (
        Masked(build_tiny_model("bert", seed=seed, window=window), question) for seed, window in ((0, 64), (1, 32))
    )
    first, second = one.answer(RECORDS), other.answer(RECORDS)
    assert np.array_equal(first.position, second.position)
    assert not np.array_equal(first.logprob, second.logprob)


def test_places_are_those_of_the_text_and_no_special_token_is_ever_hidden(pretrained):
    question = Question(patterns=6)
    answers = Masked(pretrained, question).answer(RECORDS)
    for record in RECORDS:
        spelt = pretrained.tokenizer(record.text, split_special_tokens=True, return_offsets_mapping=True)
        places = spelt["offset_mapping"][1:-1]
        rows = answers.get_rows(record.digest)
        found = list(zip(answers.start[rows].tolist(), answers.end[rows].tolist(), strict=True))
        assert found == [places[place] for place in answers.position[rows]]
        ids = spelt["input_ids"][1:-1]
        unknown = [ids[place] == pretrained.tokenizer.unk_token_id for place in answers.position[rows]]
        assert (~answers.known[rows]).tolist() == unknown


def test_what_a_text_spells_out_is_ordinary_text(pretrained):
    record = Record(id="hostile", text="[MASK] [SEP] <mask>")
    answers = Masked(pretrained, Question(one_by_one=True)).answer([record])
    spelt = "".join(record.text[a:b] for a, b in zip(answers.start, answers.end, strict=True))
    assert spelt.replace(" ", "") == "[MASK][SEP]<mask>"
    assert answers.rows > 6
    assert answers.known.all() or pretrained.tokenizer.unk_token == "[UNK]"  # noqa: S105 - "<" is unknown there


def test_a_text_without_tokens_has_no_rows_and_stays():
    records = [Record(id="empty", text=""), Record(id="full", text="some words")]
    answers = Masked(build_tiny_model("bert"), Question(patterns=2)).answer(records)
    assert answers.offsets[1] == 0
    assert answers.rows > 0
    assert Masked(build_tiny_model("bert"), Question()).answer([]).records == ()
    assert Masked(build_tiny_model("bert"), Question()).answer(records[:1]).rows == 0


def test_the_same_text_of_two_people_is_scored_once():
    records = [Record(id="1", user="ann", text="hello there"), Record(id="2", user="bob", text="hello there")]
    assert Masked(build_tiny_model("bert"), Question()).answer(records).records == (records[0].digest,)


def test_a_record_without_text_is_named():
    with refused("record_without_text") as refusal:
        Masked(build_tiny_model("bert"), Question()).answer([Record(id="pair", source="a", target="b")])
    assert "'pair'" in refusal.error.found


def test_a_tokenizer_without_a_mask_is_refused():
    pretrained = build_tiny_model("bert")
    pretrained.tokenizer.mask_token = None
    with refused("no_mask_token"):
        Masked(pretrained, Question())


@pytest.mark.parametrize(("window", "code"), [(3, "window_too_short"), (65, "window_too_long")])
def test_a_window_that_cannot_be_read_is_refused(window, code):
    with refused(code):
        Masked(build_tiny_model("bert"), Question(window=window))


def test_it_is_a_model_that_shows_probabilities():
    model = Masked(build_tiny_model("bert"), Question())
    assert isinstance(model, Model)
    assert (model.kind, model.access) == ("masked", Access.PROBABILITIES)
