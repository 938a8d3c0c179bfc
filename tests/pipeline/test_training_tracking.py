"""Exposure during training in our loop; `tests/test_callbacks.py` has the Trainer of transformers."""

import json

import pytest

from recollect.audits.exposure.audit import ExposureAudit
from recollect.corpora import synthetic
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.pipeline.training_tracking import ExposureTracker
from recollect.recipes.data.vocabulary import add_canaries_to_vocabulary
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train

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
    follower = ExposureTracker(manifest, tmp_path / "exposure.json", audit=AUDIT)
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
    follower = ExposureTracker(manifest, tmp_path / "exposure.json", audit=AUDIT, every=2, controls=True)
    train(recipe, corpus, tmp_path / "model", threads=1, on_epoch=[follower])
    written = json.loads((tmp_path / "exposure.json").read_text())
    assert [row["epoch"] for row in written] == [2]
    assert len(written[0]["secrets"]) == len(canaries.canaries)
