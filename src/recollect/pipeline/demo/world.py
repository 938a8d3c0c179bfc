"""The world of the demonstration: synthetic people, canaries, digits, and which model is trained on what."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.audits.workspace import Progress
from recollect.corpora import synthetic
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.corpus import Corpus
from recollect.corpora.corpus_writer import write_corpus
from recollect.corpora.partitions import build_cohorts, draw_balanced_groups, draw_groups
from recollect.corpora.readers.corpus_reader import read_corpus
from recollect.files import make_private_folder, write_atomically
from recollect.recipes.recipe import Privacy, Recipe
from recollect.recipes.training.loop import TrainingProgress
from recollect.recipes.training.trainer import train
from recollect.signals.evidence import TARGET
from recollect.streams import derive_seed, stream

WRITERS = {"members": 30, "others": 30, "controls": 100, "elsewhere": 30}
"""People whose texts train the language model, and people whose texts do not."""
PATIENTS = {"treated": 20, "untreated": 20, "other-patients": 160}
"""People whose notes train the masked language model, and people whose notes do not."""
NOTES = 8
DIGITS = {"deleted": 200, "rest": 400, "other-digits": 1000}
FORMAT, REPEAT = "my locker code is {digits:6}", (1, 4, 16)
BASE = labels.DEMO_BASE
"""Learnt the texts of people elsewhere. The others continue from it with its vocabulary: one that was made from private
texts would give away what is frequent in them, whatever noise comes later."""
PRIVACY = Privacy(unit="user", epsilon=2.0)
"""Bounds what all texts of a person do to the model, and all copies of a planted secret."""


@dataclass(frozen=True, kw_only=True)
class DemoWorld:
    """A folder with the data and the models of the demonstration."""

    folder: Path
    seed: int

    @property
    def data(self) -> Path:
        """Where the corpora are."""
        return self.folder / "data"

    def write_data(self) -> None:
        """Make up people, plant secrets among those who train, and divide the digits."""
        writers = write_people(self.data, WRITERS, seed=self.seed)
        planting = CanarySettings(format=FORMAT, secrets=5, repeat=REPEAT, seed=self.seed)
        planted, canaries = plant(self.read_corpus("members.jsonl"), planting)
        write_corpus(planted, self.data / "planted.jsonl")
        canaries.save(self.data / "planted.canaries.json")
        self._join(["members", "others"], "people", writers["members"])
        patients = write_people(self.data, PATIENTS, each=NOTES, seed=self.seed + 1)
        self._join(["treated", "untreated"], "patients", patients["treated"])
        write_digits(self.data, DIGITS, seed=self.seed)

    def train(self, recipes: Mapping[str, Recipe], progress: Progress) -> None:
        """Train the models; one that is trained is left as it is, and one that was interrupted continues.

        Args:
            recipes: By audit, how its models are trained.
            progress: Called with the progress.
        """
        digits, planted, rest = recipes["removal"], self.read_corpus("planted.jsonl"), self.read_corpus("rest.npz")
        fresh, texts = self._start_from(recipes["provenance"], None), self._start_from(recipes["provenance"], BASE)
        everything = Corpus.of([*self.read_corpus("deleted.npz"), *rest], name="all digits")
        jobs = {
            BASE: (fresh, self.read_corpus("elsewhere.jsonl")),
            labels.DEMO_LANGUAGE_MODEL: (texts, planted),
            labels.DEMO_PRIVATE_LANGUAGE_MODEL: (texts.model_copy(update={"privacy": PRIVACY}), planted),
            labels.DEMO_MASKED_LANGUAGE_MODEL: (recipes["membership"], self.read_corpus("treated.jsonl")),
            labels.DEMO_CLASSIFIER: (digits, everything),
            labels.DEMO_RETRAINED_CLASSIFIER: (digits, rest),
        }
        for name, (recipe, corpus) in jobs.items():
            seed = derive_seed(self.seed, labels.STREAM_DEMO, name) % 2**31
            report = partial(_report_demo_step, progress, f"training the {name.replace('-', ' ')}")
            train(recipe, corpus, self.folder / "models" / name, seed=seed, threads=1, progress=report)

    def read_corpus(self, name: str) -> Corpus:
        """A corpus of the demonstration."""
        return read_corpus(str(self.data / name))

    def list_people(self, name: str) -> frozenset[str]:
        """Those whose texts are in a corpus; of a planted one, also the synthetic owners of the secrets."""
        return frozenset(record.owner for record in self.read_corpus(name))

    def _start_from(self, recipe: Recipe, model: str | None) -> Recipe:
        """The recipe, continuing from a model, or from none."""
        start = None if model is None else str((self.folder / "models" / model).resolve())
        return recipe.model_copy(update={"model": recipe.model.model_copy(update={"start": start})})

    def _join(self, groups: Sequence[str], name: str, members: Sequence[str]) -> None:
        """Write two groups as one corpus, and beside it who of them trains the target."""
        both = [record for group in groups for record in self.read_corpus(f"{group}.jsonl")]
        write_corpus(both, self.data / f"{name}.jsonl")
        truth = build_cohorts(self.read_corpus(f"{name}.jsonl"), {TARGET: members}, unit="user", seed=self.seed)
        truth.save(self.data / f"{name}-cohorts.json")


def _report_demo_step(progress: Progress, what: str, moment: TrainingProgress) -> None:
    """How far a training of the demonstration's world is."""
    progress(what, moment.step, moment.steps)


DIRECTIONS = 6
"""In so many directions of vocabulary and of style are groups of people alike."""
WRONG_LABEL_SHARE = 0.2
"""The share of digits that are labelled at random, as by somebody in a hurry: what only memory can know."""


def write_people(
    folder: Path, sizes: Mapping[str, int], *, each: int = 20, seed: int = 0
) -> dict[str, tuple[str, ...]]:
    """Write the synthetic people of the world into one file per group, and tell who is in which.

    Of many random divisions that one is taken in which the groups write most alike, as one would design such an
    experiment: audited people and controls are then comparable by design and not by luck.

    Args:
        folder: Gets a `GROUP.jsonl` for each group.
        sizes: How many people each group has.
        each: How many texts each of them writes.
        seed: The seed of all of it.
    """
    texts = synthetic.make_texts(people=sum(sizes.values()), per_person=each, seed=seed)
    chosen = draw_balanced_groups(describe_writing(texts), sizes, seed=seed)
    for name, users in chosen.items():
        write_corpus(texts.select_users(users), folder / f"{name}.jsonl")
    return chosen


def describe_writing(texts: Corpus) -> dict[str, list[float]]:
    """Numbers that describe how each of the world's people writes: how much, in which words, and in which style."""
    written = dict[str, str]()
    for record in texts:
        written[record.owner] = f"{written.get(record.owner, '')} {record.scored_text}"
    words = [Counter(re.findall(r"\w+", text.lower())) for text in written.values()]
    style = [Counter(re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", text)).split()) for text in written.values()]
    users = Counter(word for own in words for word in own)
    alone = [sum(count for word, count in own.items() if users[word] == 1) / own.total() for own in words]
    amount = [len(text) for text in written.values()]
    table = np.column_stack([amount, alone, _find_main_directions(words), _find_main_directions(style)])
    return dict(zip(written, table.tolist(), strict=True))


def _find_main_directions(terms: Sequence[Counter[str]]) -> NDArray[np.float64]:
    """Where the world's people stand in the few directions in which they differ most in terms [people, directions]."""
    columns = {term: i for i, term in enumerate(sorted(set().union(*terms)))}
    counts = np.zeros((len(terms), len(columns)))
    for row, own in zip(counts, terms, strict=True):
        row[[columns[term] for term in own]] = 1 + np.log([*own.values()])
    weighted = counts * (1 + np.log((1 + len(terms)) / (1 + (counts > 0).sum(axis=0))))
    weighted /= np.linalg.norm(weighted, axis=1, keepdims=True)
    left, sizes, _ = np.linalg.svd(weighted - weighted.mean(axis=0), full_matrices=False)
    return np.asarray(left[:, :DIRECTIONS] * sizes[:DIRECTIONS])


def write_digits(folder: Path, sizes: Mapping[str, int], *, seed: int = 0) -> None:
    """Write the digits of the world, a fifth of them labelled at random, into one file per group.

    Args:
        folder: Gets a `GROUP.npz` for each group.
        sizes: How many of the 1,797 pictures each group has.
        seed: The seed of all of it.
    """
    from sklearn.datasets import load_digits

    data, rng = load_digits(), stream(seed, labels.STREAM_DIGITS)
    wrong, guessed = rng.random(len(data.target)) < WRONG_LABEL_SHARE, rng.integers(10, size=len(data.target))
    classes = np.where(wrong, guessed, data.target)
    chosen = draw_groups([f"{index:04d}" for index in range(len(classes))], sizes, seed=seed, name=labels.STREAM_DIGITS)
    for name, members in chosen.items():
        indices = np.array([int(member) for member in members])
        with write_atomically(make_private_folder(folder) / f"{name}.npz") as temporary, temporary.open("wb") as file:
            np.savez(file, x=(data.images[indices] / 16).astype(np.float32), y=classes[indices])
