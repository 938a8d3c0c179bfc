"""Section 6.3: six optimisers, shuffling and bagging, three models each, compared where they are equally good.

Each model is taken after the first epoch in which its validation loss is as low as the best of the worst model's.
"""

from __future__ import annotations

from functools import partial
from statistics import fmean

from common.outcomes import Figure, Outcome, rounded
from laboratory import COUNTED, SEEDS, Laboratory, Row, Trained, kept, numbers, small
from scipy.stats import kruskal

STUDY = "section63_six_optimisers"
LONG = 30
"""Epochs of optimisers that are slow here."""
SETTINGS = {
    "SGD": (("training.optimiser=sgd", "training.learning_rate=1.0"), LONG),
    "momentum SGD": (("training.optimiser=momentum", "training.learning_rate=0.1"), LONG),
    "RMSprop": ((), 10),
    "Adagrad": (("training.optimiser=adagrad", "training.learning_rate=0.02"), LONG),
    "Adadelta": (("training.optimiser=adadelta", "training.learning_rate=1.0"), LONG),
    "Adam": (("training.optimiser=adam", "training.learning_rate=0.005"), 10),
    "RMSprop, shuffled": (("sequences.layout=windows",), 10),
    "RMSprop, bagged": (("sequences.layout=windows", "training.sampling=bagging"), 10),
}
"""What is otherwise than in the base models, and epochs; learning rates are ours, and none was tried before."""


def study(lab: Laboratory) -> Outcome:
    models = {
        name: [small(*changes, seed=seed, epochs=epochs) for seed in SEEDS]
        for name, (changes, epochs) in SETTINGS.items()
    }
    curves = {
        (name, model.seed): kept(lab, STUDY, f"{name}, seed {model.seed}, curve", model, losses)
        for name, several in models.items()
        for model in several
    }
    level = max(map(min, curves.values()))
    measure = partial(at_level, level=level)
    rows = {
        name: [kept(lab, STUDY, f"{name}, seed {model.seed}, at {level:.4f}", model, measure) for model in several]
        for name, several in models.items()
    }
    figures = [
        Figure("validation loss at which they are compared, nats", None, level),
        Figure("p-value that the settings do not differ (Kruskal–Wallis)", "not significant", differ(rows)),
    ]
    for name, several in rows.items():
        bits = [row["exposure_bits"] for row in several]
        figures += [
            Figure(f"{name}: exposure at that loss, bits, mean", "no significant difference", fmean(bits)),
            Figure(f"{name}: lowest", None, min(bits)),
            Figure(f"{name}: highest", None, max(bits)),
            Figure(f"{name}: epoch, mean", None, fmean(row["epoch"] for row in several)),
        ]
    return Outcome(
        title="Section 6.3: six optimisers, shuffling, bagging at matched loss",
        scale=f"2 % of the treebank, {len(SEEDS)} models each; learning rates are ours.",
        figures=figures,
    )


def at_level(lab: Laboratory, model: Trained, *, level: float) -> Row:
    """The exposure after the first epoch in which the model is so good."""
    curve = rounded(losses(lab, model))  # as it was kept when the level was chosen
    epoch = next(i for i, loss in enumerate(curve, 1) if loss <= level)
    row = lab.exposure(model.after(epoch), COUNTED, model.canaries[0])
    return {"epoch": epoch, "validation_loss": curve[epoch - 1], **numbers(row)}


def differ(rows: dict[str, list[Row]]) -> float:
    """The p-value of a difference between settings."""
    return float(kruskal(*([row["exposure_bits"] for row in several] for several in rows.values())).pvalue)


def losses(lab: Laboratory, model: Trained) -> list[float]:
    """The validation loss after each epoch."""
    return [row["validation_loss"] for row in model.curve]
