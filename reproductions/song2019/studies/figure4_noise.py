"""Figure 4: a part of the texts that a person asks about was not trained on."""

from __future__ import annotations

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import FEW, WORDS, Laboratory, Scene

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.recipes.recipe_file import load_recipe

TRAINED = 12
"""Texts of each member that the target is trained on: half of what most people have."""
NOISE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


def number(record: Record) -> int:
    """Which of its user's texts it is."""
    return int(record.id.rpartition("-")[2])


def asked(corpus: Corpus, noise: float) -> Corpus:
    """Twelve texts of each person; of a member's, this share was held out of training."""
    unseen = round(noise * TRAINED)
    return corpus.filter(
        lambda record: unseen <= number(record) < TRAINED + unseen, name=f"audited ({noise:.0%} held out)"
    )


def study(lab: Laboratory) -> Outcome:
    clean = lab.scene(lab.small())
    texts = clean.people.members.filter(lambda record: number(record) < TRAINED, name="half of the members' texts")
    target = lab.model(load_recipe(WORDS), texts)
    scene = Scene(people=clean.people, target=target, shadows=clean.shadows, taught=clean.taught)
    found = Comparison(lab)
    for noise in NOISE:
        found.add(f"{noise:.0%} noise", scene, audited=asked(clean.people.audited, noise))
    return Outcome(
        title="Figure 4: noise",
        scale=f"{FEW} members; one target that saw {TRAINED} texts of each (paper: one for each share of noise), asked "
        f"about {TRAINED} texts of each, of which some were held out; the shadows are clean, as in the paper.",
        figures=found.figures,
        details=found.details,
    )
