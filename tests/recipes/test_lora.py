"""The recipe `lora`: adapters on the target's own base, trained and scored without writing the base again."""

from __future__ import annotations

import random

import pytest

import recollect
from recollect import load_model
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.hugging_face.causal import Causal
from recollect.recipes.model_builder import DataFacts, build_model
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.checkpoints import get_weights
from recollect.recipes.training.trainer import train
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny

pytest.importorskip("peft")

WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "then", "it", "saw", "other", "dog", "run", "over", "there")
QUICK = {"training.epochs": 1, "training.learning_rate": 0.01, "model.adapter.rank": 2}


def write_people(first: int, last: int) -> list[dict[str, str]]:
    rows = []
    for user in range(first, last):
        rng = random.Random(user)
        texts = {" ".join(rng.choices(WORDS, k=9)) for _ in range(4)}
        rows += [{"user": f"u{user}", "text": text} for text in sorted(texts)]
    return rows


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lora") / "base"
    save_tiny(build_tiny_model("gpt2"), folder)
    return folder


@pytest.fixture(scope="module")
def target(base):
    recipe = load_recipe("lora", {**QUICK, "model.start": str(base)})
    corpus = Corpus.of(Record(id=str(i), **row) for i, row in enumerate(write_people(0, 6)))
    return train(recipe, corpus, base.parent / "target", threads=1)


def test_an_adapter_is_saved_alone_and_found_with_its_base(base, target):
    assert not (target / "model.safetensors").exists()
    assert (target / "adapter_model.safetensors").stat().st_size < (base / "model.safetensors").stat().st_size
    assert recollect.models.natural_reference(str(target)) == str(base)
    assert load_model(str(target)).digest == load_model(f"{base}+{target}").digest


def test_an_adapted_model_reads_texts_as_its_base_does(base, target):
    record = Record(id="a", text="the cat sat on a mat")
    positions = [load_model(str(each)).answer([record]).position.tolist() for each in (base, target)]
    assert positions[0] == positions[1]


def test_a_checkpoint_of_an_adapter_holds_the_adapter_alone(base):
    recipe = load_recipe("lora", {**QUICK, "model.start": str(base)})
    network = build_model(recipe, None, DataFacts(), seed=0)
    weights = get_weights(network)
    frozen = sum(each.numel() for each in network.parameters() if not each.requires_grad)
    assert weights
    assert all("lora_" in name for name in weights if "rotary" not in name)
    assert sum(each.numel() for each in weights.values()) < frozen / 4


@pytest.mark.parametrize("signal", ["lira", pytest.param("rmia", marks=pytest.mark.slow)])
def test_membership_with_shadows_starts_from_the_targets_own_base(target, tmp_path, signal):
    found = recollect.membership(
        str(target),
        write_people(0, 12),
        controls=write_people(20, 60),
        members=[f"u{i}" for i in range(6)],
        others="non-members",
        signal=signal,
        shadows=2,
        recipe="lora",
        set=QUICK,
        session=recollect.Session(work=tmp_path / "work", workers=1, threads=1),
    )
    assert found.outcome in {"found", "not_found", "inconclusive"}
    assert "auc" in {finding.name for finding in found.findings}
    trained = sorted((tmp_path / "work" / "models").iterdir())
    assert len(trained) == 2
    assert not any((folder / "model.safetensors").exists() for folder in trained)


def test_the_reference_of_an_adapter_alone_is_its_base(base, target, tmp_path):
    session = recollect.Session(work=tmp_path / "work")
    plan = session.plan("membership", str(target), write_people(0, 12), controls=write_people(20, 60))
    assert plan.models["reference"].model == str(base)


def test_a_target_that_is_no_adapter_is_refused_with_the_way_out(base, tmp_path):
    session = recollect.Session(work=tmp_path / "work")
    people = {"controls": write_people(20, 60)}
    with refused("nothing_to_adapt") as refusal:
        session.plan("provenance", str(base), write_people(0, 3), recipe="lora", **people)
    assert "model.start" in refusal.error.do
    plan = session.plan(
        "provenance", str(base), write_people(0, 3), recipe="lora", set={"model.start": str(base)}, **people
    )
    assert plan.load_recipe().model.start == str(base)


def test_a_peft_model_in_memory_names_the_start_of_its_shadows(base, target, tmp_path):
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    network = peft.PeftModel.from_pretrained(transformers.AutoModelForCausalLM.from_pretrained(base), target)
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    plan = recollect.Session(work=tmp_path / "work").plan(
        "removal", network, write_people(0, 3), tokenizer=tokenizer, controls=write_people(20, 60), recipe="lora"
    )
    assert plan.load_recipe().model.start == str(base)
    assert isinstance(plan.models["target"], Causal)
