"""Figure 4 of translation and dialogue: a part of each member's texts was held out of training, and is queried.

As in the paper there is a target for every share; the shadows are clean. The paper's strongest case is translation,
where the recall of its machine falls close to 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import PAIRS, Laboratory, Scene

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record

NOISE = {"translation": (0.0, 0.25, 0.5), "dialogue": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)}
"""A talk has four sentences here, so that only quarters can be held out."""


def trained(corpus: Corpus, noise: float) -> Corpus:
    """The texts of each user without the last ones, of which there is this share."""
    of_user: dict[str | None, list[Record]] = {}
    for record in corpus:
        of_user.setdefault(record.user, []).append(record)
    kept = [record for theirs in of_user.values() for record in theirs[: len(theirs) - round(noise * len(theirs))]]
    return Corpus.of(kept, name=f"{corpus.name}, {noise:.0%} held out")


def study(lab: Laboratory) -> Iterator[Outcome]:
    found = Comparison(lab, "figure4_pairs")
    scale = (
        f"{lab.pairs_scale} Ten clean shadows. The paper prints curves: the SVM's recall falls, to almost 0 for "
        "translation with half of the texts held out; precision and AUC stay high."
    )
    for name in PAIRS:
        for noise in NOISE[name]:
            found.add(f"{name}, {noise:.0%} noise", partial(noisy, lab, name, noise))
            yield found.outcome("Figure 4: noise, translation and dialogue", scale)


def noisy(lab: Laboratory, name: str, noise: float) -> Scene:
    """A target of a part of each member's texts, with clean shadows."""
    task = lab.pair(name)
    clean = lab.scene(task)
    return replace(clean, target=lab.model(task.recipe, trained(task.people.members, noise))) if noise else clean
