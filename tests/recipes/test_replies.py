"""Training on pairs and conversations: the loss is on what the assistant says, and planted secrets reach it."""

from __future__ import annotations

import numpy as np
import pytest

import recollect
from recollect import api
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.corpus import Corpus
from recollect.corpora.messages import say
from recollect.corpora.record import Record
from recollect.recipes.canary_survival import check_canary_survival
from recollect.recipes.data.sequence_builder import SequenceBuilder
from recollect.recipes.data.sequences import IGNORED
from recollect.recipes.model_builder import DataFacts, build_tokenizer
from recollect.recipes.recipe_file import load_recipe
from recollect.testing.chats import CHATML, CHATML_GENERATION, LLAMA, build_chat_records
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A tiny checkpoint whose tokenizer knows ChatML."""
    pretrained = build_tiny_model("llama", window=256)
    pretrained.tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    pretrained.network.resize_token_embeddings(len(pretrained.tokenizer), mean_resizing=False)
    pretrained.tokenizer.chat_template = CHATML
    return save_tiny(pretrained, tmp_path_factory.mktemp("start"))


def build(start, **changes):
    named = {"model.start": str(start), "sequences.length": 250, "sequences.layout": "records", **changes}
    recipe = load_recipe("causal-transformer", named)
    return SequenceBuilder(recipe=recipe, tokenizer=build_tokenizer(recipe, []), data=DataFacts(), scale=None)


@pytest.mark.parametrize("template", [CHATML_GENERATION, CHATML, LLAMA])
def test_the_loss_is_on_exactly_what_the_assistant_says_and_the_mark_that_ends_it(start, template):
    builder = build(start, **{"sequences.chat_template": template})
    records = build_chat_records()
    sequences = builder(Corpus.of(records))
    batch = sequences.build_batch(np.arange(len(records)), np.random.default_rng)
    for row, record in enumerate(records):
        turns = [{"role": each.role, "content": each.content} for each in record.messages]
        whole = builder.tokenizer.apply_chat_template(turns, tokenize=False)
        found = builder.tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
        if template is CHATML_GENERATION:
            mask = builder.tokenizer.apply_chat_template(turns, return_dict=True, return_assistant_tokens_mask=True)
            wanted = [bool(flag) for flag in mask["assistant_masks"]]
        else:
            render = builder.tokenizer.apply_chat_template
            spans = [
                (
                    len(render(turns[:i], tokenize=False, add_generation_prompt=True)),
                    len(render(turns[: i + 1], tokenize=False)),
                )
                for i, turn in enumerate(turns)
                if turn["role"] == "assistant"
            ]
            wanted = [any(a < end and b > begin for begin, end in spans) for a, b in found["offset_mapping"]]
        expected = [token if keep else IGNORED for token, keep in zip(found["input_ids"], wanted, strict=True)][1:]
        assert batch.targets[row].tolist()[: len(expected)] == expected
        assert set(batch.targets[row].tolist()[len(expected) :]) <= {IGNORED}
    assert batch.token_count == int((batch.targets != IGNORED).sum())


def test_a_completion_is_trained_on_with_its_end_and_a_prompt_is_not(start):
    builder = build(start)
    batch = builder(Corpus.of([Record(id="1", source="The quick", target=" fox")])).build_batch(
        np.arange(1), np.random.default_rng
    )
    learnt = batch.targets[0][batch.targets[0] != IGNORED].tolist()
    assert builder.tokenizer.decode(learnt) == " fox</s>"


def test_pieces_of_nothing_but_context_are_left_out_and_streams_are_refused(start):
    long = Record(id="1", messages=(say("user", "again " * 60), say("assistant", "the dog")))
    sequences = build(start, **{"sequences.length": 20})(Corpus.of([long]))
    batch = sequences.build_batch(np.arange(len(sequences.starts)), np.random.default_rng)
    assert ((batch.targets != IGNORED).sum(dim=1) > 0).all()
    with refused("stream_of_replies"):
        builder = build(start)
        stream = builder.recipe.sequences.model_copy(update={"layout": "stream"})
        recipe = builder.recipe.model_copy(update={"sequences": stream})
        SequenceBuilder(recipe=recipe, tokenizer=builder.tokenizer, data=DataFacts(), scale=None)(Corpus.of([long]))


def test_conversations_without_a_template_are_refused_before_training(tmp_path):
    folder = save_tiny(build_tiny_model("llama"), tmp_path)
    with refused("no_chat_template") as refusal:
        build(folder)(Corpus.of(build_chat_records()))
    assert "--chat-template" in str(refusal.error)


@pytest.mark.parametrize("inside", [False, True])
def test_secrets_in_turns_survive_unless_they_are_cut_off(start, inside):
    corpus = Corpus.of(
        Record(id=f"r{i}", user=f"u{i}", messages=(say("user", "again " * 5), say("assistant", f"the dog {i} jumps")))
        for i in range(20)
    )
    planted, canaries = plant(
        corpus, CanarySettings(format="pin {digits:4}", secrets=2, repeat=(1, 3), controls=5, inside=inside)
    )
    assert all(canary.user_turn for canary in canaries.canaries)
    for length, expected in ((200, {"survives"}), (12, {"lost"})):
        recipe = build(start, **{"sequences.length": length, "sequences.long": "cut"}).recipe
        found = check_canary_survival(recipe, planted, canaries)
        assert {each.verdict for each in found.secrets} == expected
    for record in planted:
        canary = next((each for each in canaries.planted if record.id in each.records), None)
        if canary is not None:
            assert canary.text in record.scored_text
            assert canary.text not in record.context_text


def test_a_model_that_is_trained_on_conversations_is_audited_by_verbs(start, tmp_path):
    rows = [
        {
            "user": f"u{i % 4}",
            "messages": [{"role": "user", "content": "the fox"}, {"role": "assistant", "content": f"dog {i}"}],
        }
        for i in range(24)
    ]
    planted = api.plant(rows, out=tmp_path / "p.jsonl", format="pin {digits:3}", secrets=1, repeat=(1, 30), controls=20)
    assert planted.plantings == 31
    changes = {"start": str(start), "sequences.length": 100, "training.epochs": 6, "training.learning_rate": 0.01}
    trained = api.train(
        "causal-transformer", tmp_path / "p.jsonl", out=tmp_path / "model", set=[f"{k}={v}" for k, v in changes.items()]
    )
    assert trained is not None
    result = recollect.exposure(
        str(tmp_path / "model"), canaries=tmp_path / "p.canaries.json", draws=200, work=tmp_path / "work"
    )
    rows = {row["secret_id"]: row for row in result.tables_in_memory["secrets"].to_pylist()}
    assert rows["canary-1"]["exposure_bits"] > 8
    extracted = recollect.extract(
        str(tmp_path / "model"),
        format="pin {digits:3}",
        user_turn="Is there anything else I should know?",
        show_text=True,
        top=3,
        work=tmp_path / "work",
    )
    first = extracted.tables_in_memory["secrets"].to_pylist()[0]
    canary = next(each for each in planted.canaries.planted if each.planted == 30)
    assert canary.text in first.values()
