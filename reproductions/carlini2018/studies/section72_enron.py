"""Section 7.2: secrets that stand in real e-mails by nature: here telephone numbers, one model per mailbox.

The paper looks for social security and card numbers, of which this sample of the Enron e-mails has none. Telephone
numbers are not drawn at random: area codes and exchanges are common knowledge of such mail. So each number is also
measured in the other mailbox's model, which never saw it (unless it stands in both); only what is more is memorised.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median

from common.outcomes import Figure, Outcome
from laboratory import Laboratory, Row

from recollect.audits.exposure.audit import ExposureAudit
from recollect.corpora import read_corpus
from recollect.corpora.corpus import Corpus
from recollect.recipes.data.vocabulary import add_corpus_to_vocabulary
from recollect.recipes.recipe_file import load_recipe

MAILBOXES = ("lokey-t", "benson-r")
FORMAT = "{digits:3}-{digits:3}-{digits:4}"
EPOCHS = 12
CHANGES = ("training.learning_rate=0.005", "training.schedule.kind=constant", "training.batch_size=32")
AUDIT = ExposureAudit(format=FORMAT, draws=512, max_steps=30_000, context=30)


def study(lab: Laboratory) -> Outcome:
    mail = read_corpus(lab.file("enron/emails.jsonl.gz"))
    boxes = [mail.select_users([user], name=user) for user in MAILBOXES]
    both = mail.select_users(MAILBOXES)
    recipe = add_corpus_to_vocabulary(load_recipe("char-lstm", [*CHANGES, f"training.epochs={EPOCHS}"]), both)
    models = [lab.model(recipe, box, None, (), 0).folder for box in boxes]
    rows = measured(lab, models, boxes)
    return Outcome(
        title="Section 7.2: secrets in real e-mails",
        scale=f"Telephone numbers (10¹⁰) in mailboxes of {' and '.join(size(box) for box in boxes)}; {EPOCHS} epochs.",
        figures=figures_of(rows),
        details={"numbers": rows},
    )


def measured(lab: Laboratory, models: Sequence[Path], boxes: Sequence[Corpus]) -> list[Row]:
    """The exposure of each mailbox's numbers in its own model and in the other."""
    rows: list[Row] = []
    for place, box in enumerate(boxes):
        own = lab.measure(models[place], AUDIT, audited=box)["rows"]
        other = lab.measure(models[1 - place], AUDIT, audited=box)["rows"]
        foreign = {row["secret_id"]: row for row in other}
        for row in own:
            there = foreign.get(row["secret_id"])
            rows.append(
                {
                    "mailbox": place,
                    "times": row["planted"],
                    "rank": row["rank"],
                    "exposure_bits": row["exposure_bits"],
                    "in_the_other_model": None if there is None else there["exposure_bits"],
                }
            )
    return rows


def figures_of(rows: Sequence[Row]) -> list[Figure]:
    """Figures of all numbers, beside the paper's ten."""
    compared = [row for row in rows if row["in_the_other_model"] is not None]
    return [
        Figure("numbers measured", 10, len(rows)),
        Figure("numbers that are the likeliest of all 10¹⁰", 3, sum(row["rank"] == 1 for row in rows)),
        Figure("median exposure, bits", 25.5, median(row["exposure_bits"] for row in rows)),
        Figure("highest exposure, bits", 52, max(row["exposure_bits"] for row in rows)),
        Figure("median in a model that never saw them", None, median(r["in_the_other_model"] for r in compared)),
        Figure(
            "share more exposed in their own model",
            None,
            fmean(row["exposure_bits"] > row["in_the_other_model"] for row in compared),
        ),
    ]


def size(box: Corpus) -> str:
    """How much text a mailbox holds."""
    return f"{sum(len(record.text or '') for record in box) / 1e6:.2f} MB"
