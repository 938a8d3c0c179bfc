"""Damaged files and full disks: a training is refused, or ends with the same weights; what was whole stays whole."""

from __future__ import annotations

import resource
import shutil
from contextlib import contextmanager

import numpy as np
import pytest

from recollect.corpora import synthetic
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.cohorts import Cohorts
from recollect.errors import RecollectError
from recollect.models.loading.loader import load_model
from recollect.models.loading.model_folders import find_checkpoint_folder
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trained_models import find_model_faults
from recollect.recipes.training.trainer import train
from recollect.testing.refusals import refused

SMALL = {"units": 8, "embedding": 8, "epochs": 3, "batch_size": 8, "tokenizer.size": 100, "keep": "best"}
CORPUS = synthetic.make_texts(people=8, per_person=4, seed=0)
REFUSALS = {"checkpoint_damaged", "tokenizer_damaged", "manifest_damaged", "training_damaged", "model_damaged"}


def run(out, **more):
    return train(load_recipe("word-lstm", SMALL), CORPUS, out, threads=1, validation=CORPUS, **more)


def stop_after_two(end):
    if end.epoch == 2:
        raise KeyboardInterrupt


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run(tmp_path_factory.mktemp("whole") / "model")


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    out = tmp_path_factory.mktemp("begun") / "model"
    with pytest.raises(KeyboardInterrupt):
        run(out, on_epoch=[stop_after_two])
    return out


def flip(path, rng):
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def find_refusal(work):
    """The code with which something is refused; None if it is done."""
    try:
        work()
    except RecollectError as error:
        return error.code
    return None


def read_weights(out):
    return (out / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        "working/checkpoint.safetensors",
        "working/tokenizer/tokenizer.json",
        "working/tokenizer/manifest.json",
        "training.json",
        "curve.json",
    ],
)
def test_a_flipped_bit_in_a_begun_training_is_refused_or_changes_nothing(begun, whole, tmp_path, name):
    rng, codes = np.random.default_rng(0), []
    for trial in range(2 if name == "curve.json" else 6):
        out = tmp_path / str(trial) / "model"
        shutil.copytree(begun, out)
        flip(out / name, rng)
        codes.append(find_refusal(lambda out=out: run(out)))
        if codes[-1] is None:
            assert read_weights(out) == read_weights(whole)
            assert (out / "card.json").exists()
    assert {*codes} <= {*REFUSALS, "folder_of_another_training", None}
    assert any(codes) or name == "curve.json"  # the curve is written anew from the checkpoint


def test_a_flipped_bit_in_any_file_of_a_trained_model_is_refused(whole, tmp_path):
    rng = np.random.default_rng(0)
    names = sorted(path.name for path in whole.iterdir() if path.name != "README.md")
    assert {"model.safetensors", "tokenizer.json", "config.json", "card.json", "curve.json", "training.json"} < {*names}
    assert find_model_faults(whole)[::2] == (len(names), [])
    for name in names:
        out = tmp_path / name / "model"
        shutil.copytree(whole, out)
        accepted = 0
        for _ in range(4):
            before = (out / name).read_bytes()
            flip(out / name, rng)
            code = find_refusal(lambda out=out: find_checkpoint_folder(str(out)))
            if code is None:
                accepted += 1
                assert name == "card.json"  # a space more or less in JSON says the same
                assert load_model(str(out)).digest == load_model(str(whole)).digest
            else:
                assert code == "model_damaged"
            (out / name).write_bytes(before)
        assert accepted < 4
    flip(out / "model.safetensors", rng)
    with refused("model_damaged") as refusal:
        run(out)
    assert "Delete this folder" in refusal.error.do
    assert [fault.path.name for fault in find_model_faults(out)[2]] == ["model.safetensors"]


def test_a_model_whose_file_is_missing_is_refused_and_one_of_others_needs_no_list(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "model")
    (tmp_path / "model" / "curve.json").unlink()
    with refused("model_damaged"):
        load_model(str(tmp_path / "model"))
    (tmp_path / "model" / "card.json").write_text('{"start_symbol": null}')
    assert load_model(str(tmp_path / "model"))


@contextmanager
def file_size_limit(size):
    """No file may grow beyond this size, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_one_message_and_the_training_continues_when_there_is_room(whole, tmp_path):
    largest = max(path.stat().st_size for path in whole.rglob("*"))
    for share in (0.001, 0.05, 0.3, 0.7):
        with refused("disk_full"), file_size_limit(int(largest * share)):
            run(tmp_path / "model")
        assert not list(tmp_path.rglob(".*"))
    assert read_weights(run(tmp_path / "model")) == read_weights(whole)


def test_a_full_disk_leaves_a_checkpoint_as_it_was(begun, whole, tmp_path):
    shutil.copytree(begun, tmp_path / "model")
    checkpoint = tmp_path / "model" / "working" / "checkpoint.safetensors"
    before = checkpoint.read_bytes()
    with refused("disk_full"), file_size_limit(len(before) // 2):
        run(tmp_path / "model")
    assert checkpoint.read_bytes() == before
    assert read_weights(run(tmp_path / "model")) == read_weights(whole)


def test_a_flipped_bit_in_cohorts_or_canaries_is_refused(tmp_path):
    rng, refusals = np.random.default_rng(0), 0
    cohorts = Cohorts.of({"target": ["a", "c"]}, units=["a", "b", "c"], unit="user", corpus="0" * 32, seed=3)
    canaries = Canaries(corpus="0" * 32, seed=3, canaries=())
    for made, kind in ((cohorts, Cohorts), (canaries, Canaries)):
        made.save(tmp_path / "file.json")
        whole, content = kind.load(tmp_path / "file.json"), (tmp_path / "file.json").read_bytes()
        for _ in range(40):
            flip(tmp_path / "file.json", rng)
            code = find_refusal(lambda kind=kind: kind.load(tmp_path / "file.json"))
            if code is None:
                assert kind.load(tmp_path / "file.json") == whole
            else:
                refusals += 1
                assert code in {"bad_cohorts", "bad_manifest"}
            (tmp_path / "file.json").write_bytes(content)
    assert refusals > 60
