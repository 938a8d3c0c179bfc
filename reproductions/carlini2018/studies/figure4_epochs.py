"""Figure 4: exposure, training loss and test loss after each epoch, on the paper's own sample of 5 %."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import FIVE_PERCENT, ONE_SECRET, Laboratory, spelling

from recollect.corpora import read_corpus
from recollect.files import read_json
from recollect.pipeline.training_tracking import ExposureTracker
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train

EPOCHS = 40
CHANGES = ["training.learning_rate=0.01", "training.schedule.kind=constant", f"training.epochs={EPOCHS}"]


def study(lab: Laboratory) -> Outcome:
    corpus, (canaries,) = lab.planted(lab.treebank("train", FIVE_PERCENT), (ONE_SECRET,))
    recipe = spelling(load_recipe("char-lstm", CHANGES), (canaries,))
    validation = read_corpus(lab.file("ptb/ptb.valid.txt.gz"))
    file = lab.work / "figure4" / "exposure.json"
    follow = ExposureTracker(canaries, file)
    train(recipe, corpus, lab.work / "figure4" / "model", validation=validation, threads=lab.threads, on_epoch=[follow])
    epochs = [{**row, **row.pop("secrets")[0]} for row in read_json(file)]
    best = min(epochs, key=lambda row: row["validation_loss"])
    top = max(epochs, key=lambda row: row["exposure_bits"])
    reached = [row["epoch"] for row in epochs if row["rank"] == 1]
    return Outcome(
        title="Figure 4: exposure and loss by epoch",
        scale="None: 5 % of the treebank and 40 epochs, as in the paper; one secret, one model.",
        figures=[
            Figure("exposure after one epoch, bits", 3, epochs[0]["exposure_bits"]),
            Figure("epoch of the lowest validation loss", 10, best["epoch"]),
            Figure("lowest validation loss, nats", None, best["validation_loss"]),
            Figure("exposure at that epoch, bits", "30 or more", best["exposure_bits"]),
            Figure("highest exposure, bits (29.9 is all there is)", "30 or more", top["exposure_bits"]),
            Figure("first epoch in which the secret is the likeliest", 10, min(reached) if reached else "none"),
            Figure("training loss after the last epoch, nats", None, epochs[-1]["training_loss"]),
            Figure("validation loss after the last epoch, nats", None, epochs[-1]["validation_loss"]),
        ],
        details={"epochs": epochs},
    )
