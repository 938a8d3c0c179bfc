"""Exposure during training: in our loop, and in the Trainer of transformers."""

import json

import pytest
import torch
import transformers

from recollect.audits.exposure.audit import ExposureAudit
from recollect.corpora import synthetic
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.pipeline.exposure_tracking import ExposureCallback, ExposureFollower
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.trainer import train
from recollect.recipes.vocabulary import add_canaries_to_vocabulary
from recollect.testing.tiny import build_tiny_model

QUICK = ["units=32", "embedding=16", "training.epochs=3", "training.learning_rate=0.01", "training.batch_size=16"]
AUDIT = ExposureAudit(draws=100, max_steps=500)


@pytest.fixture
def planted(tmp_path):
    corpus, canaries = plant(
        synthetic.make_texts(people=3, per_person=10, seed=0),
        CanarySettings(format="my pin is {digits:3}", secrets=2, repeat=(1, 4), controls=5),
    )
    canaries.save(tmp_path / "canaries.json")
    return corpus, canaries, tmp_path / "canaries.json"


def test_every_epoch_of_our_loop_is_measured_and_the_weights_are_left_alone(planted, tmp_path):
    corpus, canaries, manifest = planted
    recipe = add_canaries_to_vocabulary(load_recipe("char-lstm", QUICK), canaries)
    follower = ExposureFollower(manifest, tmp_path / "exposure.json", audit=AUDIT)
    followed = train(recipe, corpus, tmp_path / "followed", threads=1, on_epoch=[follower])
    plain = train(recipe, corpus, tmp_path / "plain", threads=1)
    weights = [(folder / "model.safetensors").read_bytes() for folder in (followed, plain)]
    assert weights[0] == weights[1]
    curve = json.loads((followed / "curve.json").read_text())
    assert all(row["exposure_bits_planted_1"] >= 0 and row["exposure_bits_planted_4"] >= 0 for row in curve)
    written = json.loads((tmp_path / "exposure.json").read_text())
    assert [row["epoch"] for row in written] == [1, 2, 3]
    assert {secret["secret_id"] for secret in written[0]["secrets"]} == {each.id for each in canaries.planted}
    assert all(row["training_loss"] > 0 for row in written)


def test_only_some_epochs_and_controls_if_so_wished(planted, tmp_path):
    corpus, canaries, manifest = planted
    recipe = add_canaries_to_vocabulary(load_recipe("char-lstm", QUICK), canaries)
    follower = ExposureFollower(manifest, tmp_path / "exposure.json", audit=AUDIT, every=2, controls=True)
    train(recipe, corpus, tmp_path / "model", threads=1, on_epoch=[follower])
    written = json.loads((tmp_path / "exposure.json").read_text())
    assert [row["epoch"] for row in written] == [2]
    assert len(written[0]["secrets"]) == len(canaries.canaries)


def test_the_trainer_of_transformers_can_be_followed(planted, tmp_path):
    corpus, canaries, manifest = planted
    tiny = build_tiny_model("gpt2")
    texts = [record.text for record in corpus][:16]
    rows = [tiny.tokenizer(text, truncation=True, max_length=32) for text in texts]
    rows = [{"input_ids": row["input_ids"], "labels": row["input_ids"]} for row in rows]
    network = tiny.network.requires_grad_(True)
    options = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"),
        num_train_epochs=2,
        per_device_train_batch_size=1,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        logging_steps=4,
    )
    callback = ExposureCallback(manifest, tmp_path / "exposure.json", audit=AUDIT)
    trainer = transformers.Trainer(
        model=network, args=options, train_dataset=rows, processing_class=tiny.tokenizer, callbacks=[callback]
    )
    trainer.train()
    assert [row["epoch"] for row in json.loads((tmp_path / "exposure.json").read_text())] == [1, 2]
    logged = [row for row in trainer.state.log_history if "exposure_bits_planted_4" in row]
    assert len(logged) == 2
    assert all(torch.isfinite(torch.tensor(row["exposure_bits_planted_1"])) for row in logged)
    assert len(canaries.planted) == 4
