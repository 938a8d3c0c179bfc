"""Section 7.2 with one mailbox of the paper's size, trained as the paper trains: to the lowest validation loss.

The mailbox is another one than those of `section72_enron`, from the labelled part of the Enron e-mails; the model that
never saw its numbers is of all other senders there.
"""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import Laboratory, Trained
from studies.section72_enron import figures_of, measured

from recollect.corpora import read_corpus
from recollect.corpora.corpus import Corpus
from recollect.recipes.data.vocabulary import add_corpus_to_vocabulary
from recollect.recipes.recipe import Recipe
from recollect.recipes.recipe_file import load_recipe

SENDER = "steven.kean@enron.com"
EPOCHS = 20
HELD_OUT = 20
"""Every so many-th e-mail validates."""


def study(lab: Laboratory) -> Outcome:
    return Outcome(
        title="Section 7.2: a mailbox of the paper's size",
        scale=f"Telephone numbers (10¹⁰) of one sender, 1,000 e-mails of some 3 MB (paper: six senders of 1.7 to 5.7 "
        f"MB, social security and card numbers); at most {EPOCHS} epochs, the model of the lowest validation loss.",
        figures=lab.keep_figures("section72_large", "mailbox", [1, SENDER, EPOCHS, HELD_OUT], lambda: numbers_of(lab)),
    )


def numbers_of(lab: Laboratory) -> list[Figure]:
    """The figures of the sender's numbers."""
    mail = read_corpus(lab.file("enron/labelled_emails.jsonl.gz"), skip_bad=True)
    recipe = add_corpus_to_vocabulary(load_recipe("char-lstm", [f"training.epochs={EPOCHS}"]), mail)
    boxes = [
        mail.select_users([SENDER], name="the mailbox"),
        mail.filter(lambda record: record.user != SENDER, name="all other senders"),
    ]
    trained, models = zip(*(best_of(lab, recipe, box) for box in boxes), strict=True)
    rows = measured(lab, [model.after(model.best_epoch) for model in models], trained)
    return figures_of([row for row in rows if row["mailbox"] == 0])


def best_of(lab: Laboratory, recipe: Recipe, box: Corpus) -> tuple[Corpus, Trained]:
    """The e-mails that train a model, and the model."""
    records = list(box)
    training = Corpus.of([each for i, each in enumerate(records) if i % HELD_OUT], name=box.name)
    validation = Corpus.of(records[::HELD_OUT], name=f"{box.name}, held out")
    return training, lab.model(recipe, training, validation, (), 0)
