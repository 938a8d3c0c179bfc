"""Private training from end to end: what the card says, snapshots, a kill in between, and what is refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import dp_accounting
import numpy as np
import pytest
import torch
import yaml
from dp_accounting.pld import PLDAccountant
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.recipes.private import unit_gradients
from recollect.recipes.private.privacy_terms import check_private_recipe, settle_terms
from recollect.recipes.private.private_update import PrivateUpdate
from recollect.recipes.recipe import Privacy, Recipe, Recurrent, Schedule, Sequences, Tokenizer, Training, Transformer
from recollect.recipes.recipe_file import list_builtin_recipes, load_recipe
from recollect.recipes.training.trainer import train
from recollect.testing.refusals import refused

pytestmark = pytest.mark.usefixtures("counted_once")


class Killed(BaseException):
    """Stands in for SIGKILL inside one process."""


def corpus(records: int = 24, users: int = 6) -> Corpus:
    rng = np.random.default_rng(0)
    words = ["ape", "bee", "cat", "dog", "elk", "fox"]
    return Corpus.of(
        Record(id=str(i), user=f"user {i % users}", text=" ".join(rng.choice(words, 2 + i % 5))) for i in range(records)
    )


def recipe(**privacy) -> Recipe:
    settings = {"unit": "record", "clip": 0.5, "noise": 0.9, "delta": 1e-3, **privacy}
    return Recipe(
        name="tiny",
        model=Recurrent(layers=2, units=6, embedding=5, dropout=0.2),
        tokenizer=Tokenizer(kind="words", size=50),
        training=Training(optimiser="rmsprop", batch_size=6, epochs=3, learning_rate=0.01),
        privacy=Privacy(**settings),
    )


def card(folder) -> dict:
    return json.loads((folder / "card.json").read_text())


def weights(folder) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same(one, other) -> bool:
    return all(torch.equal(value, weights(other)[name]) for name, value in weights(one).items())


def google(*, rate: float, noise: float, steps: int, delta: float) -> float:
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    return PLDAccountant().compose(dp_accounting.SelfComposedDpEvent(event, steps)).get_epsilon(delta)


def test_the_card_names_unit_and_accountant_and_an_epsilon_that_google_confirms(tmp_path):
    stated = card(train(recipe(), corpus(), tmp_path / "model"))["privacy"]
    assert stated["unit"] == "record"
    assert stated["accountant"] == "prv"
    assert (stated["units"], stated["rate"], stated["steps"]) == (24, 0.25, 12)
    expected = google(rate=0.25, noise=0.9, steps=12, delta=1e-3)
    assert stated["epsilon"] == pytest.approx(expected, rel=0.02)
    assert f"ε = {stated['epsilon']:.3g}" in (tmp_path / "model" / "README.md").read_text()
    curve = json.loads((tmp_path / "model" / "curve.json").read_text())
    spent = [row["epsilon"] for row in curve]
    assert spent == sorted(spent)
    assert spent[-1] == stated["epsilon"]


def test_the_exact_training_loss_stays_off_the_card(tmp_path):
    folder = train(recipe(noise=0.0), corpus(), tmp_path / "model")
    assert "training_loss" not in card(folder)["curve"]
    assert any("training losses" in what for what in card(folder)["privacy"]["not_covered"])


def test_clipping_alone_is_no_guarantee_and_the_card_says_so(tmp_path):
    stated = card(train(recipe(noise=0.0), corpus(), tmp_path / "model"))["privacy"]
    assert stated["epsilon"] is None
    assert stated["guarantee"] == "none: clipped only"


def test_users_are_the_unit_where_the_recipe_says_so_and_the_budget_is_kept(tmp_path):
    settings = recipe(unit="user", rate=1.0, epsilon=8.0, noise=None, accountant="rdp")
    stated = card(train(settings, corpus(), tmp_path / "model"))["privacy"]
    assert (stated["unit"], stated["units"], stated["rate"], stated["steps"]) == ("user", 6, 1.0, 3)
    assert 0.95 * 8.0 < stated["epsilon"] <= 8.0
    assert "all of their records together" in stated["unit_is"]


def with_training(settings: Recipe, **changed) -> Recipe:
    return settings.model_copy(update={"training": settings.training.model_copy(update=changed)})


BY_USER = {"unit": "user", "rate": 0.5}


@pytest.mark.parametrize(
    ("optimiser", "privacy"),
    [
        ("rmsprop", {}),
        ("adam", {**BY_USER, "update": "fedavg"}),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                ("adam", {}),
                ("rmsprop", BY_USER),
                ("adam", BY_USER),
                ("rmsprop", {**BY_USER, "update": "fedavg"}),
            ]
        ),
    ],
)
def test_a_killed_private_training_ends_with_the_same_weights_and_the_same_expense(
    tmp_path, monkeypatch, privacy, optimiser
):
    settings = with_training(recipe(accountant="rdp", **privacy), optimiser=optimiser)
    whole = train(settings, corpus(), tmp_path / "whole")
    step, calls = PrivateUpdate.step, []

    def dying(self, which):
        calls.append(which.number)
        if len(calls) == 6:
            raise Killed
        return step(self, which)

    monkeypatch.setattr(PrivateUpdate, "step", dying)
    with pytest.raises(Killed):
        train(settings, corpus(), tmp_path / "killed")
    resumed = train(settings, corpus(), tmp_path / "killed")
    assert calls[5:7] == [5, 4]  # it died in step 5, and continued from the end of an epoch
    assert same(whole, resumed)
    assert card(whole)["privacy"] == card(resumed)["privacy"]
    assert not same(whole, train(settings, corpus(), tmp_path / "other", seed=1))


CHILD = """
import sys
from pathlib import Path
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
from recollect.testing.refusals import refused

texts = Corpus.of(Record(id=str(i), user=str(i % 9), text="ape bee cat dog elk"[: 3 + i % 16]) for i in range(60))
train(load_recipe(sys.argv[1]), texts, Path(sys.argv[2]), threads=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["record", "user"])
def test_sigkill_while_training_privately_then_the_same_command(tmp_path, unit):
    settings = with_training(recipe(unit=unit, accountant="rdp", snapshots=(50.0,)), epochs=12)
    file = tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump(settings.model_dump(mode="json", exclude={"name"})))
    for name in ("whole", "killed"):
        command = [sys.executable, "-c", CHILD, str(file), str(tmp_path / name)]
        child = subprocess.Popen(command)  # noqa: S603 - our own code
        if name == "killed":
            while not (tmp_path / name / "working" / "checkpoint.safetensors").exists():
                assert child.poll() is None
                time.sleep(0.05)
            child.kill()
            assert child.wait() == -signal.SIGKILL
            child = subprocess.Popen(command)  # noqa: S603 - our own code
        assert child.wait() == 0
    whole, resumed = tmp_path / "whole", tmp_path / "killed"
    assert same(whole, resumed)
    assert same(whole / "snapshot-eps-50", resumed / "snapshot-eps-50")
    assert card(whole)["privacy"] == card(resumed)["privacy"]


def test_snapshots_of_one_run_stay_within_each_budget_and_are_whole_models(tmp_path):
    plain = recipe(accountant="rdp", noise=1.5)
    terms = settle_terms(plain.privacy, units=24, batch_size=6, epochs=3)
    within = {3: round(terms.compute_epsilon_after(3) + 0.01, 3), 7: round(terms.compute_epsilon_after(7) + 0.01, 3)}
    settings = recipe(accountant="rdp", noise=1.5, snapshots=(*within.values(), 50.0, 100.0))
    out = train(settings, corpus(), tmp_path / "model")
    for steps, epsilon in within.items():
        folder = out / f"snapshot-eps-{epsilon:g}"
        stated = card(folder)["privacy"]
        assert stated["steps"] == steps
        assert stated["epsilon"] <= epsilon < terms.compute_epsilon_after(steps + 1)
        assert AutoModelForCausalLM.from_pretrained(folder).config.units == 6
        assert not same(out, folder)
    for never_used_up in ("50", "100"):
        assert same(out, out / f"snapshot-eps-{never_used_up}")
    assert same(out, train(plain, corpus(), tmp_path / "without"))


def test_a_snapshot_is_what_a_run_of_that_many_steps_gives(tmp_path):
    terms = settle_terms(recipe(noise=1.5, accountant="rdp").privacy, units=24, batch_size=6, epochs=1)
    after_an_epoch = terms.compute_epsilon_after(4) * 1.0001
    long = train(recipe(noise=1.5, accountant="rdp", snapshots=(after_an_epoch,)), corpus(), tmp_path / "long")
    short = train(with_training(recipe(noise=1.5, accountant="rdp"), epochs=1), corpus(), tmp_path / "short")
    (folder,) = long.glob("snapshot-eps-*")
    assert same(short, folder)
    assert card(folder)["privacy"]["epsilon"] == card(short)["privacy"]["epsilon"]
    assert card(folder)["curve"]["epochs"] == 1


def test_a_snapshot_that_not_even_one_step_keeps_is_refused(tmp_path):
    with refused("snapshot_too_early"):
        train(recipe(snapshots=(0.001,), accountant="rdp"), corpus(), tmp_path / "model")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"sequences": Sequences(layout="windows")}, "private_layout"),
        ({"sequences": Sequences(layout="stream")}, "private_layout"),
        ({"training": Training(clip=1.0)}, "private_clip"),
        ({"training": Training(accumulate=2)}, "private_accumulate"),
        ({"training": Training(sampling="bagging")}, "private_sampling"),
        ({"training": Training(precision="bfloat16")}, "private_precision"),
        ({"training": Training(schedule=Schedule(kind="plateau"))}, "private_steering"),
        ({"privacy": Privacy(unit="record", noise=1.0, update="fedavg")}, "private_update"),
    ],
)
def test_settings_that_would_break_the_guarantee_are_refused(changed, code):
    with refused(code):
        check_private_recipe(recipe().model_copy(update=changed), validated=False)


def test_a_plateau_on_validation_data_is_fine():
    settings = recipe().model_copy(update={"training": Training(schedule=Schedule(kind="plateau"), keep="best")})
    check_private_recipe(settings, validated=True)


def test_budget_and_noise_exclude_each_other():
    for both in ({"noise": None, "epsilon": None}, {"noise": 1.0, "epsilon": 1.0}):
        with refused("noise_or_epsilon"):
            settle_terms(recipe(**both).privacy, units=10, batch_size=2, epochs=1)
    with refused("not_private"):
        settle_terms(Privacy(), units=10, batch_size=2, epochs=1)
    with refused("nothing_to_train_on"):
        settle_terms(recipe().privacy, units=0, batch_size=2, epochs=1)


def test_a_batch_larger_than_the_corpus_takes_everybody():
    terms = settle_terms(recipe(delta=None).privacy, units=10, batch_size=100, epochs=3)
    assert (terms.rate, terms.steps, terms.expected_batch) == (1.0, 3, 10.0)
    assert terms.delta == 0.01


def test_a_model_that_cannot_be_trained_privately_is_refused_before_training(tmp_path):
    config = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 32}
    settings = recipe().model_copy(update={"model": Transformer(architecture="gpt2", config=config)})
    with refused("tied_weights"):
        train(settings, corpus(), tmp_path / "tied")
    assert not list((tmp_path / "tied").rglob("checkpoint*"))
    untied = Transformer(architecture="gpt2", config={**config, "tie_word_embeddings": False})
    folder = train(recipe(accountant="rdp").model_copy(update={"model": untied}), corpus(), tmp_path / "untied")
    assert card(folder)["privacy"]["epsilon"] > 0


def test_large_parts_and_small_parts_of_a_batch_give_the_same_model(tmp_path, monkeypatch):
    settings = recipe(accountant="rdp").model_copy(update={"model": Recurrent(units=6, embedding=5)})
    whole = train(settings, corpus(), tmp_path / "whole")
    monkeypatch.setattr(unit_gradients, "_MAX_BYTES", 1)
    one_by_one = train(settings, corpus(), tmp_path / "one by one")
    for name, value in weights(whole).items():
        torch.testing.assert_close(value, weights(one_by_one)[name], atol=1e-5, rtol=1e-3)


def test_private_training_learns(tmp_path):
    """With little noise the loss falls almost as without; a wrong sign or a missing divisor would show."""
    easy = Corpus.of(Record(id=str(i), user=f"user {i}", text="ape bee cat dog") for i in range(40))
    settings = with_training(recipe(noise=0.01, accountant="rdp"), epochs=30, optimiser="adam", batch_size=10)
    out = train(settings, easy, tmp_path / "model")
    curve = json.loads((out / "curve.json").read_text())
    assert curve[-1]["training_loss"] < 0.5 * curve[0]["training_loss"]


PRIVATE = {
    "char-lstm-dp": ("record", {"epochs": 1, "model.layers": 1}),
    "word-lstm-user-dp": ("user", {"epochs": 2, "privacy.rate": 1.0}),
    "word-gru-user-dp": ("user", {"epochs": 4, "training.batch_size": 6, "privacy.snapshots": [5.0, 6.2]}),
}


def test_every_built_in_private_recipe_is_named_here():
    assert set(PRIVATE) == {name for name in list_builtin_recipes() if load_recipe(name).private}


@pytest.mark.parametrize("name", PRIVATE)
def test_the_papers_private_recipes_train_and_keep_their_budget(tmp_path, name):
    unit, changes = PRIVATE[name]
    settings = load_recipe(name, {"model.units": 6, "embedding": 5, "accountant": "rdp", **changes})
    stated = card(train(settings, corpus(), tmp_path / "model"))["privacy"]
    assert stated["unit"] == unit
    assert stated["epsilon"] <= settings.privacy.epsilon
    assert stated["clip"] == settings.privacy.clip


@pytest.mark.slow
def test_the_settings_of_the_first_paper_need_about_the_noise_of_mcmahan_and_others():
    settings = load_recipe("word-lstm-user-dp")
    terms = settle_terms(settings.privacy, units=5000, batch_size=1, epochs=settings.training.epochs)
    assert (terms.steps, terms.expected_batch) == (300, 200)
    assert terms.noise == pytest.approx(1.0, abs=0.05)
