"""Section 6.3: optimisers, shuffling and bagging, compared where the models are equally good.

Each model is taken after the first epoch in which its validation loss is as low as the best of the worst model's.
"""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import COUNTED, TEN, Laboratory, Trained, small

CHANGES = {
    "Adam, in order": ("training.optimiser=adam", "training.learning_rate=0.005"),
    "RMSprop, shuffled": ("sequences.layout=windows",),
    "RMSprop, bagged": ("sequences.layout=windows", "training.sampling=bagging"),
}
"""In order: the text is read as it stands, the state carried along. Else windows of it are shuffled or drawn."""


def study(lab: Laboratory) -> Outcome:
    models = {name: lab.trained(small(*changes, epochs=TEN)) for name, changes in CHANGES.items()}
    models["RMSprop, in order"] = lab.trained(small())
    level = max(min(losses(model)) for model in models.values())
    figures, details = [Figure("validation loss at which they are compared, nats", None, level)], {}
    for name, model in models.items():
        epoch = next(i for i, loss in enumerate(losses(model), 1) if loss <= level)
        row = lab.exposure(model.after(epoch), COUNTED, model.canaries[0])
        details[name] = {"epoch": epoch, "validation_loss": losses(model)[epoch - 1], **row}
        figures.append(
            Figure(f"{name}: exposure at that loss, bits", "no significant difference", row["exposure_bits"])
        )
    return Outcome(
        title="Section 6.3: optimisers, shuffling, bagging at matched loss",
        scale=f"2 % of the treebank, at most {TEN} epochs, one model each; learning rates are ours.",
        figures=figures,
        details=details,
    )


def losses(model: Trained) -> list[float]:
    return [row["validation_loss"] for row in model.curve[:TEN]]
