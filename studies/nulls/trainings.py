"""Targets, references and fleets: trained once, scored once, and then only read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from exposures import build_secrets
from people import FLEETS, IMAGES, TARGETS, TEXTS, Division, People, divide, read_people
from stored import StoredModel, load_stored, store_answers

from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import draw_halves
from recollect.models.model import Question, Sampling
from recollect.recipes.recipe_file import load_recipe
from recollect.streams import derive_seed

_SMALL = ("units=64", "embedding=64", "dropout=0", "tokenizer.size=1500", "learning_rate=0.01", "epochs=10")
RECIPES = {
    **dict.fromkeys(TEXTS, ("word-lstm", _SMALL)),
    **dict.fromkeys(IMAGES, ("mlp", ("epochs=20",))),
}
"""Small and soon overfitted: whose texts are foreign to such a model differs much from person to person."""
CASED = ("tokenizer.lowercase=false",)
"""Of targets that read capitals, which others do not: without them `lowercase` would compare a text with itself."""
_QUESTION = Question(sampling=Sampling(top_k=1))
"""No audit here asks what a model would draw, so nothing of its distribution is sorted."""
SHADOWS = 8
"""Models of a fleet, each trained on half of its people."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """A target, its reference and shadow models, and whose texts train them; answers are read when they are needed."""

    number: int
    fleet: int
    people: People
    division: Division
    folder: Path

    @property
    def target(self) -> StoredModel:
        """The audited model."""
        return self._load(f"target-{self.number}")

    @property
    def cased(self) -> StoredModel:
        """The audited model, trained to read capitals."""
        return self._load(f"target-{self.number}-cased")

    @property
    def secrets(self) -> StoredModel:
        """The audited model, asked about secrets."""
        return load_stored(self.folder / f"target-{self.number}-secrets.npz")

    @property
    def reference(self) -> StoredModel:
        """A model that was trained on others."""
        return load_stored(self.folder / f"reference-{self.fleet}.npz")

    @property
    def shadows(self) -> dict[str, StoredModel]:
        """The fleet."""
        return {name: self._load(f"fleet-{self.fleet}-{name}") for name in self.cohorts}

    def _load(self, name: str) -> StoredModel:
        """A model whose answers are stored, and that can be asked about other records."""
        return replace(load_stored(self.folder / f"{name}.npz"), folder=self.folder / name)

    @cached_property
    def cohorts(self) -> dict[str, tuple[str, ...]]:
        """Which of the fleet's users trained each shadow."""
        return _draw_shadows(self.division, self.fleet)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where data and models lie."""

    data: Path | None
    work: Path

    def prepare(self, name: str, target: int, *, fleet: bool = True) -> None:
        """Train and score all that serves one target, as far as it was not done before."""
        people = read_people(self.data, name)
        number = target % FLEETS
        division = divide(people, target, number)
        self._train(people, f"target-{target}", division.members, people.users)
        if name in TEXTS:
            self._score_secrets(people, f"target-{target}")
        if name in TEXTS and target < TARGETS:
            self._train(people, f"target-{target}-cased", division.members, people.users, CASED)
        self._train(people, f"reference-{number}", division.reference, people.users)
        if fleet:
            # the target's members, too, for worlds with sets that are still in
            scored = [*division.fleet, *division.near, *division.members]
            for shadow, members in _draw_shadows(division, number).items():
                self._train(people, f"fleet-{number}-{shadow}", members, scored)

    def _train(
        self, people: People, model: str, members: Sequence[str], scored: Sequence[str], changes: Sequence[str] = ()
    ) -> None:
        """Train one model, have it score, and keep its answers in one file."""
        folder = self.work / people.name / model
        stored = folder.with_suffix(".npz")
        if stored.exists():
            return
        from recollect.models.loading.loader import load_model
        from recollect.recipes.training.trainer import train

        corpus = Corpus.of([r for user in sorted(members) for r in people.records[user]], name=model)
        seed = derive_seed(0, people.name, model) % 2**31
        recipe, small = RECIPES[people.name]
        train(load_recipe(recipe, (*small, *changes)), corpus, folder, seed=seed, threads=1)
        records = [r for user in sorted(scored) for r in people.records[user]]
        store_answers(load_model(str(folder), question=_QUESTION), records, stored)

    def _score_secrets(self, people: People, model: str) -> None:
        """Have a target score every secret of the exposure audit's worlds."""
        stored = self.work / people.name / f"{model}-secrets.npz"
        if not stored.exists():
            from recollect.models.loading.loader import load_model

            target = load_model(str(self.work / people.name / model), question=_QUESTION)
            store_answers(target, build_secrets(people), stored)

    def load(self, name: str, target: int) -> Trained:
        """The models of one target, all of them trained before."""
        return _load(self, name, target)


@lru_cache(maxsize=32)
def _load(bench: Bench, name: str, target: int) -> Trained:
    """The models of one target."""
    people, fleet = read_people(bench.data, name), target % FLEETS
    division = divide(people, target, fleet)
    return Trained(number=target, fleet=fleet, people=people, division=division, folder=bench.work / name)


def _draw_shadows(division: Division, number: int) -> dict[str, tuple[str, ...]]:
    """Which half of the fleet's users trains each shadow."""
    return draw_halves(division.fleet, SHADOWS, seed=number)
