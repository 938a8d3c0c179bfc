"""A fleet: every cohort becomes a model, whatever the layout; killed, it continues; a failure loses no other."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from recollect.corpora import Corpus, Record
from recollect.corpora.cohorts import Cohorts
from recollect.execution.local import LocalBackend
from recollect.recipes.fleet import Fleet, _MemberTrainer, train_fleet
from recollect.recipes.layout_trial import WorkerLayout, pick_layout
from recollect.recipes.recipe_file import load_recipe

QUICK = ["units=8", "embedding=8", "training.epochs=2", "training.batch_size=8", "tokenizer.size=50"]
ONE = WorkerLayout(workers=1, threads=1)


def corpus_of(users: int = 6) -> Corpus:
    return Corpus.of(
        Record(id=f"{user}-{i}", user=f"u{user}", text=f"user {user} says word{i} again and again")
        for user in range(users)
        for i in range(10)
    )


def fleet_of(corpus: Corpus, **members: list[str]) -> Fleet:
    units = sorted({record.user for record in corpus})
    cohorts = Cohorts.of(members, units=units, unit="user", corpus=corpus.digest, seed=0)
    return Fleet(recipe=load_recipe("word-lstm", QUICK), corpus=corpus, cohorts=cohorts)


def weights(folder):
    return {name: value.tobytes() for name, value in load_file(folder / "model.safetensors").items()}


def test_every_cohort_becomes_a_model_of_its_own(tmp_path):
    fleet = fleet_of(corpus_of(), target=["u0", "u1", "u2"], shadow=["u3", "u4"])
    seen = []
    trained = train_fleet(fleet, tmp_path, layout=ONE, progress=lambda done, total: seen.append((done, total)))
    assert list(trained.folders) == ["target", "shadow"]
    assert not trained.failures
    assert seen[-1] == (4, 4)
    assert weights(trained.folders["target"]) != weights(trained.folders["shadow"])


def test_a_worker_process_trains_the_same_member(tmp_path):
    corpus = corpus_of()
    here = train_fleet(fleet_of(corpus, target=["u0", "u1"]), tmp_path / "a", layout=ONE)
    # one item starts one process, which is what takes the time here
    together = fleet_of(corpus, shadow=["u3", "u4"], target=["u0", "u1"])
    (there,) = LocalBackend(workers=2, threads=1).map(_MemberTrainer(together, tmp_path / "b"), ["target"])
    assert weights(here.folders["target"]) == weights(Path(there.value))
    assert here.folders["target"].name == Path(there.value).name


@pytest.mark.slow
def test_a_member_depends_neither_on_the_others_nor_on_the_layout(tmp_path):
    corpus = corpus_of()
    alone = train_fleet(fleet_of(corpus, target=["u0", "u1"]), tmp_path / "a", layout=ONE)
    together = train_fleet(
        fleet_of(corpus, shadow=["u3", "u4"], target=["u0", "u1"]),
        tmp_path / "b",
        layout=WorkerLayout(workers=2, threads=1),
    )
    assert weights(alone.folders["target"]) == weights(together.folders["target"])
    assert alone.folders["target"].name == together.folders["target"].name


def test_what_is_trained_is_not_trained_again(tmp_path):
    fleet = fleet_of(corpus_of(), target=["u0", "u1", "u2"])
    folder = train_fleet(fleet, tmp_path, layout=ONE).folders["target"]
    before = (folder / "model.safetensors").stat().st_mtime_ns
    (folder / "working").mkdir()  # as a kill leaves it that comes after the card
    (folder / "working" / "checkpoint.safetensors").write_bytes(b"weights of private texts")
    more = fleet_of(corpus_of(), target=["u0", "u1", "u2"], second=["u4"])
    assert train_fleet(more, tmp_path, layout=ONE).folders["target"] == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    assert not (folder / "working").exists()


def test_a_member_is_found_again_from_another_corpus_in_which_the_same_records_train_it(tmp_path):
    people, more = corpus_of(4), corpus_of(6)
    members = ["u0", "u1", "u2"]
    folder = fleet_of(people, target=members).get_folder(tmp_path, "target")
    assert fleet_of(more, target=members).get_folder(tmp_path, "target") == folder
    changed = Corpus.of([*list(people)[:-1], Record(id="3-9", user="u2", text="something else")])
    assert fleet_of(changed, target=members).get_folder(tmp_path, "target") != folder


def test_a_member_that_fails_is_reported_and_the_others_continue(tmp_path):
    fleet = fleet_of(corpus_of(), broken=[], target=["u0", "u1"])
    trained = train_fleet(fleet, tmp_path, layout=ONE)
    assert list(trained.folders) == ["target"]
    assert trained.failures["broken"].error.code == "empty_corpus"


def test_the_layout_is_one_that_uses_the_cores_there_are():
    recipe = load_recipe("word-lstm", QUICK)
    picked = pick_layout(recipe, corpus_of(), models=4)
    single = pick_layout(recipe, corpus_of(), models=1)
    assert single.workers == 1
    assert picked.workers * picked.threads == single.threads


SCRIPT = """
import sys; sys.path.insert(0, {folder!r})
from pathlib import Path
from test_fleet import ONE, corpus_of, fleet_of
from recollect.recipes.fleet import train_fleet
from recollect.recipes.layout_trial import WorkerLayout
from recollect.testing.refusals import refused
if __name__ == "__main__":
    fleet = fleet_of(corpus_of(40), a=[f"u{{i}}" for i in range(20)], b=[f"u{{i}}" for i in range(10, 30)])
    trained = train_fleet(fleet, Path(sys.argv[1]), layout=WorkerLayout(workers=2, threads=1))
    assert not trained.failures, trained.failures
    print(*(trained.folders[name] for name in "ab"))
"""


@pytest.mark.slow
def test_a_fleet_killed_at_any_moment_ends_with_the_same_weights(tmp_path, request):
    script = tmp_path / "fleet.py"
    script.write_text(SCRIPT.format(folder=str(request.path.parent)))

    def start(work):
        command = [sys.executable, str(script), str(work)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603

    whole, _ = start(tmp_path / "whole").communicate()
    for moment in (6.0, 7.5, 9.0):
        disturbed = start(tmp_path / "killed")
        time.sleep(moment)
        disturbed.send_signal(signal.SIGKILL)
        disturbed.wait()
    again, _ = start(tmp_path / "killed").communicate()
    for one, other in zip(whole.split(), again.split(), strict=True):
        assert one != other
        assert load_file(f"{one}/model.safetensors").keys()
        same = {k: v.tobytes() for k, v in load_file(f"{one}/model.safetensors").items()}
        assert same == {k: v.tobytes() for k, v in load_file(f"{other}/model.safetensors").items()}
