"""The loop: what it does in a step, in an epoch, and after it was killed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from recollect.files import read_json
from recollect.models.architectures import RecurrentConfig, RecurrentLM
from recollect.recipes.data.sequence_layouts import lay_out_records, lay_out_streams
from recollect.recipes.data.sequences import SpecialTokens, TokenTable
from recollect.recipes.recipe import Schedule, Training
from recollect.recipes.training.checkpoints import get_weights
from recollect.recipes.training.loop import Loop
from recollect.recipes.training.optimisers import LearningRate, build_optimiser
from recollect.recipes.training.samplers import SequentialSampler, ShuffledSampler
from recollect.recipes.training.update import PlainUpdate

MARKS = SpecialTokens(padding=0, before=(2,), after=(3,))
OPTIMISERS = ["sgd", "momentum", "rmsprop", "adagrad", "adadelta", "adam", "adamw", "adamax"]


class Killed(BaseException):
    """Stands in for SIGKILL inside one process."""


def texts(count: int = 23) -> TokenTable:
    rng = np.random.default_rng(0)
    found = [[2, *rng.integers(4, 12, rng.integers(1, 9)), 3] for _ in range(count)]
    return TokenTable(flat=np.concatenate(found).astype(np.int32), offsets=np.cumsum([0, *map(len, found)]))


def model(dropout: float = 0.3) -> RecurrentLM:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return RecurrentLM(RecurrentConfig(vocab_size=12, embedding=6, units=8, layers=2, dropout=dropout))


def loop(folder, settings: Training | None = None, *, stream: bool = False, dropout: float = 0.3, **options) -> Loop:
    settings = settings or Training(batch_size=4, epochs=3)
    trained, tokens = model(dropout), texts()
    if stream:
        sequences = lay_out_streams(tokens, MARKS, length=5, rows=4)
        sampler = SequentialSampler(size=len(sequences.starts), batch_size=4)
    else:
        sequences = lay_out_records(tokens, np.zeros(len(tokens), np.int32), MARKS, length=5)
        sampler = ShuffledSampler(
            lengths=sequences.lengths, batch_size=4, seed=7, bagging=settings.sampling == "bagging"
        )
    update = PlainUpdate(
        model=trained,
        sequences=sequences,
        optimiser=build_optimiser(settings, trained.parameters()),
        seed=7,
        clip=settings.clip,
        accumulate=settings.accumulate,
        carries_state=stream,
        precision=getattr(torch, settings.precision),
    )
    rate = LearningRate(
        schedule=settings.schedule, initial=settings.learning_rate, steps=sampler.steps * settings.epochs
    )
    return Loop(
        model=trained,
        update=update,
        sampler=sampler,
        rate=rate,
        epochs=settings.epochs,
        seed=7,
        folder=folder,
        curve_file=folder / "curve.json",
        **options,
    )


def same_weights(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    return all(torch.equal(value, get_weights(other)[name]) for name, value in get_weights(one).items())


def test_the_loop_does_what_a_bare_loop_does(tmp_path):
    trained = loop(tmp_path, dropout=0.0)
    twin, sequences, sampler = model(0.0), trained.update.sequences, trained.sampler
    curve = trained.run()
    optimiser = torch.optim.Adam(twin.parameters(), lr=0.001)
    for epoch in range(3):
        total, count = 0.0, 0
        for drawn in sampler.iter_batches(epoch):
            batch = sequences.build_batch(drawn, np.random.default_rng)
            logits = twin(**batch.inputs).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total, count = total + loss.item() * batch.token_count, count + batch.token_count
        assert curve[epoch]["training_loss"] == pytest.approx(total / count, rel=1e-5)
    for name, value in get_weights(twin).items():
        assert torch.allclose(value, get_weights(trained.model)[name], atol=1e-5)


def killed_after(trained: Loop, steps: int) -> None:
    """Run until a checkpoint is, then die some steps later."""
    step, calls = trained.update.step, 0

    def dying(which):
        nonlocal calls
        calls += 1
        if calls > steps:
            raise Killed
        return step(which)

    trained.update.step = dying
    with pytest.raises(Killed):
        trained.run()


@pytest.mark.parametrize(("optimiser", "stream"), [*((name, False) for name in OPTIMISERS), ("rmsprop", True)])
def test_a_killed_training_ends_with_the_weights_of_an_undisturbed_one(tmp_path, optimiser, stream):
    settings = Training(
        optimiser=optimiser, batch_size=4, epochs=3, sampling="bagging", clip=0.5, schedule=Schedule(kind="plateau")
    )
    undisturbed = loop(tmp_path / "whole", settings, stream=stream)
    curve = undisturbed.run()
    for steps in (3, 2, 7):
        killed_after(loop(tmp_path / "killed", settings, stream=stream, checkpoint_seconds=0), steps)
    torch.rand(3)
    resumed = loop(tmp_path / "killed", settings, stream=stream)
    resumed_curve = resumed.run()
    assert same_weights(undisturbed.model, resumed.model)
    untimed = [[{**row, "seconds": 0} for row in rows] for rows in (curve, resumed_curve)]
    assert untimed[0] == untimed[1]
    assert read_json(tmp_path / "killed" / "curve.json") == resumed_curve


def test_training_leaves_the_global_random_state_alone(tmp_path):
    before = torch.random.get_rng_state()
    loop(tmp_path).run()
    assert torch.equal(before, torch.random.get_rng_state())


def test_another_seed_gives_other_weights(tmp_path):
    one, other = loop(tmp_path / "a"), loop(tmp_path / "b")
    other.seed = 8
    one.run(), other.run()
    assert not same_weights(one.model, other.model)


def test_accumulating_changes_nothing_but_memory(tmp_path):
    settings = Training(optimiser="sgd", learning_rate=0.5, batch_size=6, epochs=2)
    whole = loop(tmp_path / "a", settings, dropout=0.0)
    parts = loop(tmp_path / "b", settings.model_copy(update={"accumulate": 3}), dropout=0.0)
    whole.run(), parts.run()
    for name, value in get_weights(whole.model).items():
        assert torch.allclose(value, get_weights(parts.model)[name], atol=1e-6)


def test_the_best_weights_are_kept_and_training_stops_early(tmp_path):
    losses, seen = iter([3.0, 2.0, 2.5, 2.6, 1.0]), []

    def validate() -> float:
        seen.append({name: value.clone() for name, value in get_weights(trained.model).items()})
        return next(losses)

    settings = Training(batch_size=4, epochs=5)
    trained = loop(tmp_path, settings, validate=validate, stop_after=2, keep_best=True)
    curve = trained.run()
    assert [row["validation_loss"] for row in curve] == [3.0, 2.0, 2.5, 2.6]
    assert all(torch.equal(seen[1][name], value) for name, value in get_weights(trained.model).items())


def test_a_hook_sees_each_epoch_once_and_adds_to_the_curve(tmp_path):
    def hook(end):
        assert not end.model.training
        return {"exposure": 10 * end.epoch}

    curve = loop(tmp_path, hooks=[hook]).run()
    assert [row["exposure"] for row in curve] == [10, 20, 30]
    assert [row["exposure"] for row in read_json(tmp_path / "curve.json")] == [10, 20, 30]


def test_progress_ends_with_the_last_step(tmp_path):
    moments = []
    curve = loop(tmp_path, progress=moments.append).run()
    assert moments[-1].step == moments[-1].steps == curve[-1]["steps"]
    assert moments[-1].loss == curve[-1]["training_loss"]


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_learns_too(tmp_path, precision):
    trained = loop(tmp_path, Training(batch_size=4, epochs=8, learning_rate=0.01, precision=precision))
    # processors have no recurrent layers in half precision, so the memory is taken out
    trained.model.rnn = torch.nn.Identity()
    trained.model.lm_head = torch.nn.Linear(6, 12)
    trained.model.forward = lambda input_ids: SimpleNamespace(
        logits=trained.model.lm_head(trained.model.embed_tokens(input_ids))
    )
    trained.update.optimiser = build_optimiser(Training(learning_rate=0.01), trained.model.parameters())
    curve = trained.run()
    assert curve[-1]["training_loss"] < curve[0]["training_loss"] - 0.05


def test_carried_states_are_those_of_one_long_read(tmp_path):
    trained = loop(tmp_path, Training(batch_size=4, epochs=1, learning_rate=1e-12), stream=True, dropout=0.0)
    sequences = trained.update.sequences
    curve = trained.run()
    rows = [
        np.concatenate(
            [sequences.flat[s : s + n] for s, n in zip(sequences.starts[r::4], sequences.lengths[r::4], strict=True)]
        )
        for r in range(4)
    ]
    last = [sequences.flat[sequences.starts[-4 + r] + sequences.lengths[-4 + r]] for r in range(4)]
    table = torch.from_numpy(np.concatenate([np.stack(rows), np.array(last)[:, None]], axis=1).astype(np.int64))
    targets = table[:, 1:].clone()
    targets[targets == 2] = -100
    logits = trained.model(table[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    assert curve[0]["training_loss"] == pytest.approx(loss.item(), abs=1e-5)


def test_rates_follow_their_schedule():
    plateau = LearningRate(
        schedule=Schedule(kind="plateau", factor=0.5, patience=1, threshold=0.0), initial=1.0, steps=10
    )
    rates = []
    for loss in [3.0, 2.0, 2.1, 2.2, 1.9, 1.9, 1.9]:
        plateau.end_epoch(loss)
        rates.append(plateau.get_rate(0))
    assert rates == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25]
    linear = LearningRate(schedule=Schedule(kind="linear", warmup=0.2), initial=1.0, steps=10)
    assert [linear.get_rate(step) for step in (0, 1, 2, 6, 9)] == [0.5, 1.0, 1.0, 0.5, 0.125]
    assert replace(linear, schedule=Schedule()).get_rate(9) == 1.0
