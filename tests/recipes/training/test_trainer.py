"""Training from end to end: every recipe makes a model that loads anywhere, and says how it came to be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

import recollect.models.architectures  # noqa: F401 - makes our architectures known to the Auto classes
from recollect.corpora import Corpus, Record
from recollect.corpora.cohorts import Cohorts
from recollect.files import read_json
from recollect.models.loading.loader import load_model
from recollect.recipes.recipe import Perceptron, ResNet, Transformer
from recollect.recipes.recipe_file import list_builtin_recipes, load_recipe
from recollect.recipes.training.job import select_held_out
from recollect.recipes.training.trainer import train
from recollect.testing.refusals import refused

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "seven", "wizards", "box"]
RNG = np.random.default_rng(3)
SMALL = {"gpt2": {"n_embd": 8, "n_layer": 1, "n_head": 2}, "bert": {"hidden_size": 8, "num_hidden_layers": 1}}
SMALL["bert"] |= {"num_attention_heads": 2, "intermediate_size": 8}
SMALL["bart"] = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
SMALL["bart"] |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2}


def sentence() -> str:
    return " ".join(RNG.choice(WORDS, RNG.integers(3, 12)))


def texts(count: int = 40) -> Corpus:
    return Corpus.of(Record(id=str(i), user=f"u{i % 5}", text=sentence()) for i in range(count))


def pairs() -> Corpus:
    return Corpus.of(Record(id=str(i), user="u", source=sentence(), target=sentence()) for i in range(20))


def labelled() -> Corpus:
    return Corpus.of(Record(id=str(i), text=sentence(), label=("no", "yes")[i % 2]) for i in range(20))


def images() -> Corpus:
    arrays = RNG.integers(0, 256, (20, 16, 16), dtype=np.uint8)
    return Corpus.of(Record(id=str(i), array=array, label=i % 3) for i, array in enumerate(arrays))


def small(name: str):
    """A built-in recipe, made small enough for a test."""
    recipe = load_recipe(name)
    changes: dict[str, object] = {"epochs": 2, "batch_size": 8}
    if isinstance(recipe.model, Transformer):
        changes["model.config"] = SMALL[recipe.model.architecture]
        if recipe.tokenizer.kind == "bpe":
            changes["tokenizer.size"] = 300
    elif isinstance(recipe.model, ResNet):
        changes |= {"model.widths": [8, 8], "model.depths": [1, 1]}
    elif isinstance(recipe.model, Perceptron):
        changes["hidden"] = [8]
    else:
        changes |= {"model.units": 8, "embedding": 6}
    return load_recipe(name, changes)


def corpus_for(recipe) -> Corpus:
    if recipe.tokenizer is None:
        return images()
    return {"seq2seq": pairs, "classifier": labelled}.get(recipe.task, texts)()


AUTO = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "classifier": "AutoModelForSequenceClassification",
}
PLAIN = [name for name in list_builtin_recipes() if load_recipe(name).privacy.unit == "none" and name != "lora"]
"""Recipes that train a whole model; `lora` adapts another."""


@pytest.mark.parametrize("name", PLAIN)
def test_every_recipe_makes_a_model_that_loads_here_and_elsewhere(tmp_path, name):
    recipe = small(name)
    corpus = corpus_for(recipe)
    out = train(recipe, corpus, tmp_path / "model", seed=1, threads=1)
    auto = "AutoModelForImageClassification" if recipe.tokenizer is None else AUTO[recipe.task]
    network = getattr(transformers, auto).from_pretrained(out)
    assert sum(p.numel() for p in network.parameters()) > 0
    model = load_model(str(out))
    assert model.kind == recipe.task
    answers = model.answer(list(corpus)[:4])
    assert answers.rows > 0
    assert np.isfinite(answers.logprob).all()
    card = read_json(out / "card.json")
    assert card["corpus"]["digest"] == corpus.digest
    assert card["recipe"]["name"] == name
    assert len(read_json(out / "curve.json")) == 2
    assert (out / "README.md").read_text().startswith("---\nlibrary_name: transformers\n")
    assert not (out / "working").exists()


def test_the_loss_that_training_reports_is_the_loss_that_scoring_finds(tmp_path):
    corpus = texts()
    recipe = load_recipe(
        "word-lstm", {"model.units": 8, "embedding": 8, "dropout": 0.0, "epochs": 1, "learning_rate": 1e-12}
    )
    out = train(recipe, corpus, tmp_path / "model", validation=corpus, threads=1)
    answers = load_model(str(out)).answer(list(corpus))
    curve = read_json(out / "curve.json")
    total = curve[0]["validation_loss"] * curve[0]["tokens"]
    # training also predicts where each text ends, which is no token of the text
    network = transformers.AutoModelForCausalLM.from_pretrained(out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    ends = 0.0
    for record in corpus:
        ids = tokenizer(record.text, return_tensors="pt").input_ids
        ends -= float(network(ids).logits[0, -1].detach().log_softmax(-1)[tokenizer.eos_token_id])
    assert -float(answers.logprob.sum()) + ends == pytest.approx(total, rel=1e-4)


def test_the_same_call_again_returns_at_once_and_another_is_refused(tmp_path):
    corpus, recipe, out = texts(), small("word-lstm"), tmp_path / "model"
    train(recipe, corpus, out, threads=1)
    written = (out / "model.safetensors").stat().st_mtime_ns
    assert train(recipe, corpus, out, threads=1) == out
    assert (out / "model.safetensors").stat().st_mtime_ns == written
    for arguments, what in [
        ((small("word-gru"), corpus, 0), "recipe"),
        ((recipe, texts(39), 0), "corpus"),
        ((recipe, corpus, 1), "seed"),
    ]:
        with refused("folder_of_another_training") as refusal:
            train(arguments[0], arguments[1], out, seed=arguments[2])
        assert what in refusal.error.found


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with refused("folder_not_empty"):
        train(small("word-lstm"), texts(), tmp_path)


def test_a_training_that_was_interrupted_continues_to_the_same_weights(tmp_path):
    corpus, recipe = texts(), small("char-lstm")
    whole = train(recipe, corpus, tmp_path / "whole", threads=1)

    def interrupt(end):
        if end.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe, corpus, tmp_path / "resumed", threads=1, on_epoch=[interrupt])
    assert not (tmp_path / "resumed" / "card.json").exists()
    resumed = train(recipe, corpus, tmp_path / "resumed")
    assert (whole / "model.safetensors").read_bytes() == (resumed / "model.safetensors").read_bytes()
    assert read_json(resumed / "card.json")["threads"] == 1


def test_the_first_weights_depend_on_the_seed_and_nothing_else(tmp_path):
    corpus = texts()
    before = torch.random.get_rng_state()
    made = [train(small("word-lstm"), corpus, tmp_path / f"{i}", seed=i // 2, threads=1) for i in range(3)]
    assert torch.equal(before, torch.random.get_rng_state())
    contents = [(out / "model.safetensors").read_bytes() for out in made]
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]


def test_a_cohort_trains_on_its_members_only(tmp_path):
    corpus = texts()
    users = [f"u{i}" for i in range(5)]
    cohorts = Cohorts.of({"target": ["u1", "u3"]}, units=users, unit="user", corpus=corpus.digest, seed=0)
    out = train(small("word-lstm"), corpus, tmp_path / "model", cohort=(cohorts, "target"), threads=1)
    card = read_json(out / "card.json")
    assert (card["corpus"]["size"], card["corpus"]["users"]) == (16, 2)
    assert card["cohort"]["name"] == "target"
    assert read_json(out / "members.json") == ["u1", "u3"]


def test_training_continues_from_a_checkpoint_with_its_vocabulary(tmp_path):
    first = train(small("word-gru"), texts(), tmp_path / "public", threads=1)
    recipe = load_recipe("word-gru", {"model.start": str(first), "epochs": 1, "learning_rate": 1e-12})
    other = Corpus.of([Record(id="a", text="words that nobody ever saw before")])
    second = train(recipe, other, tmp_path / "private", threads=1)
    assert (first / "tokenizer.json").read_text() == (second / "tokenizer.json").read_text()
    one, two = (transformers.AutoModelForCausalLM.from_pretrained(out).state_dict() for out in (first, second))
    assert all(torch.allclose(one[name], two[name], atol=1e-6) for name in one)


def test_an_adapter_is_trained_in_place_of_the_weights(tmp_path):
    corpus = texts()
    base = train(small("causal-transformer"), corpus, tmp_path / "base", threads=1)
    recipe = load_recipe("causal-transformer", {"model.start": str(base), "model.adapter": {"rank": 2}, "epochs": 1})
    adapter = train(recipe, corpus, tmp_path / "adapter", threads=1)
    assert (adapter / "adapter_config.json").is_file()
    assert not (adapter / "model.safetensors").exists()
    records = list(corpus)[:3]
    plain, adapted = (load_model(ref).answer(records).logprob for ref in (str(base), f"{base}+{adapter}"))
    assert not np.allclose(plain, adapted)


def test_an_adapter_without_a_base_is_refused(tmp_path):
    recipe = small("causal-transformer").model_copy()
    recipe = load_recipe(
        "causal-transformer", {"model.adapter": {"rank": 2}, "model.config": SMALL["gpt2"], "size": 300}
    )
    with refused("nothing_to_adapt"):
        train(recipe, texts(), tmp_path / "model")


def test_held_out_records_are_the_last_of_each_user():
    corpus = Corpus.of(Record(id=f"{user}{i}", user=user, text="x") for i in range(10) for user in "ab")
    assert select_held_out(corpus, 0.2) == {"a8", "a9", "b8", "b9"}
    nobody = Corpus.of(Record(id=str(i), text="x") for i in range(10))
    assert select_held_out(nobody, 0.3) == {"7", "8", "9"}


def test_a_held_out_share_is_not_trained_on(tmp_path):
    recipe = load_recipe("word-lstm", {"model.units": 8, "embedding": 8, "epochs": 1, "training.validation": 0.25})
    out = train(recipe, texts(), tmp_path / "model", threads=1)
    card = read_json(out / "card.json")
    assert (card["corpus"]["size"], card["corpus"]["users"], card["validation"]["size"]) == (30, 5, 10)


@pytest.mark.parametrize(
    ("recipe", "corpus", "code"),
    [
        ({"training.keep": "best"}, texts, "no_validation"),
        ({}, lambda: Corpus.of([]), "empty_corpus"),
        ({"layout": "stream", "accumulate": 2}, texts, "stream_settings"),
    ],
)
def test_what_cannot_be_trained_is_refused(tmp_path, recipe, corpus, code):
    with refused(code):
        train(load_recipe("word-lstm", {"model.units": 8, **recipe}), corpus(), tmp_path / "model")


def test_a_transformer_cannot_read_a_stream(tmp_path):
    recipe = load_recipe("causal-transformer", {"model.config": SMALL["gpt2"], "size": 300, "layout": "stream"})
    with refused("no_state_to_carry"):
        train(recipe, texts(), tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "code", "named"),
    [
        ({"model.config.n_leyer": 2}, "unknown_model_setting", "'n_layer'"),
        ({"architecture": "gpt3"}, "unknown_architecture", "'gpt3'"),
        ({"n_head": 7}, "architecture_refused", "gpt2"),
        ({"architecture": "t5", "model.config": {}}, "architecture_refused", "t5"),
    ],
)
def test_unknown_settings_of_a_transformer_are_refused(tmp_path, changes, code, named):
    recipe = load_recipe("causal-transformer", {"size": 300, **changes})
    with refused(code) as refusal:
        train(recipe, texts(), tmp_path / "model")
    assert named in str(refusal.error)


def test_a_hook_has_all_it_takes_to_ask_the_model(tmp_path):
    from recollect.models.hugging_face.causal import Causal
    from recollect.models.loading.pretrained import Pretrained
    from recollect.models.model import Question

    corpus, asked = texts(), []

    def hook(end):
        made = Pretrained(name="now", network=end.model, tokenizer=end.tokenizer, digest="", card=end.card_entries)
        asked.append(Causal(made, Question()).answer(list(corpus)).logprob)
        return {"mean_logprob": float(asked[-1].mean())}

    out = train(small("word-lstm"), corpus, tmp_path / "model", threads=1, on_epoch=[hook])
    assert np.allclose(asked[-1], load_model(str(out)).answer(list(corpus)).logprob, atol=1e-5)
    assert [row["mean_logprob"] for row in read_json(out / "curve.json")] == [float(each.mean()) for each in asked]


def test_only_causal_models_read_joined_texts(tmp_path):
    recipe = load_recipe("masked-transformer", {"model.config": SMALL["bert"], "size": 300, "layout": "windows"})
    with refused("layout_of_another_task"):
        train(recipe, texts(), tmp_path / "model")


def test_a_loss_that_is_no_number_ends_the_training(tmp_path):
    recipe = load_recipe("word-lstm", {"model.units": 8, "optimiser": "sgd", "learning_rate": 3e38})
    with refused("loss_not_finite"):
        train(recipe, texts(), tmp_path / "model", threads=1)
    assert not (tmp_path / "model" / "card.json").exists()


def test_group_norm_takes_the_place_of_batch_norm(tmp_path):
    recipe = load_recipe("resnet18", {"norm": "group", "model.widths": [8, 12], "model.depths": [1, 1], "epochs": 1})
    out = train(recipe, images(), tmp_path / "model", threads=1)
    network = transformers.AutoModelForImageClassification.from_pretrained(out)
    kinds = {type(module).__name__ for module in network.modules()}
    assert "GroupNorm" in kinds
    assert "BatchNorm2d" not in kinds
    assert load_model(str(out)).answer(list(images())).rows == 20
