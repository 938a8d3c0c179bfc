"""`recollect removal` as a user types it, with perceptrons that are really trained."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from recollect.audits.removal.mixture import WEAKEST
from recollect.cli.app import app

SETTINGS = ("--set", "model.hidden=[64]", "--set", "training.epochs=100", "--set", "training.learning_rate=0.5")
TRAINING = ("--recipe", "mlp", *SETTINGS, "--models", 2)
CLASSES, WIDTH = 4, 5


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def written(path, count, seed, **changes):
    """Pictures of four classes, a third of which has a wrong label that only memory can know."""
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=count)
    centres = np.random.default_rng(0).random((CLASSES, WIDTH, WIDTH))
    x = (centres[y] + 0.3 * rng.standard_normal((count, WIDTH, WIDTH))).astype(np.float32)
    shown = np.where(rng.random(count) < 1 / 3, rng.integers(CLASSES, size=count), y)
    np.savez(path, **{"x": x, "y": shown, **changes})
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("removal")
    query = written(made / "query.npz", 120, 1)
    written(made / "fresh.npz", 120, 4)
    written(made / "controls.npz", 160, 2)
    out = call("train", "mlp", query, *SETTINGS, "--out", made / "model")
    assert out.exit_code == 0, out.output
    return made


def audited(folder, query, *more):
    controls = folder / "controls.npz"
    return call("removal", folder / "model", query, "--controls", controls, "--work", folder / "work", *TRAINING, *more)


def test_what_trained_the_model_is_still_there(folder, tmp_path):
    found = audited(folder, folder / "query.npz", "--out", tmp_path / "run")
    assert found.exit_code == 0, found.output
    result = json.loads((tmp_path / "run" / "results" / "removal.json").read_text())
    assert result["outcome"] == "found"
    assert result["verdict"].startswith("Still there")
    assert {path.stem for path in (tmp_path / "run" / "tables" / "removal").iterdir()} == {
        "audited",
        "controls",
        "members",
        "power",
    }


def test_what_did_not_train_it_is_gone(folder):
    found = audited(folder, folder / "fresh.npz", "--json")
    assert found.exit_code == 0, found.output
    result = json.loads(found.stdout)
    low, high = {each["name"]: each for each in result["findings"]}["fraction_still_in"]["interval"]
    assert low <= 0.05
    assert high < 0.5 / WEAKEST  # as if the target memorised that much less; "gone" rules out 0.5 on one side, at 5 %
    assert result["outcome"] == "not_found"


@pytest.mark.parametrize("method", ["ema", pytest.param("ks", marks=pytest.mark.slow)])
def test_the_published_methods_run(folder, method):
    found = audited(folder, folder / "query.npz", "--method", method, "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["findings"][0]["name"] == f"rho_{method}"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"y": np.full(30, 9)}, "scoring_failed"),
        ({"x": np.zeros((30, 7, 7), dtype=np.float32)}, "scoring_failed"),
        ({"x": np.full((30, WIDTH, WIDTH), np.nan, dtype=np.float32)}, "not_finite"),
        ({"x": np.zeros((0, WIDTH, WIDTH), dtype=np.float32), "y": np.zeros(0, dtype=np.int64)}, "empty_corpus"),
    ],
)
def test_query_sets_that_cannot_be_checked_are_refused(folder, tmp_path, changes, code, check_refusal):
    check_refusal(audited(folder, written(tmp_path / "bad.npz", 30, 5, **changes)), code)


def test_a_query_set_of_controls_has_nothing_left_to_decide_about(folder):
    found = audited(folder, folder / "controls.npz", "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["outcome_code"] == "no_audited_left"


def test_without_recipe_or_reference_it_says_what_is_missing(folder, check_refusal):
    found = call("removal", folder / "model", folder / "query.npz", "--controls", folder / "controls.npz")
    check_refusal(found, "missing_recipe")


def test_a_model_that_was_retrained_is_all_that_the_target_needs_to_be_compared_with(folder, tmp_path):
    retrained = call("train", "mlp", folder / "fresh.npz", *SETTINGS, "--out", tmp_path / "retrained")
    assert retrained.exit_code == 0, retrained.output
    given = ("--controls", folder / "controls.npz", "--reference", tmp_path / "retrained", "--work", tmp_path / "work")
    found = call("removal", folder / "model", folder / "query.npz", *given, "--json")
    assert found.exit_code == 0, found.output
    assert not (tmp_path / "work" / "models").exists()
