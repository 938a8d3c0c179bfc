"""What the studies share: people, models of their texts, and what the audit says of them.

A study takes a scene (a target, shadows, and who trained which) and audits it with several settings. Models and answers
are kept in the work folder under an address of all that they depend on, so that a run that was killed goes on, two
studies that want the same model train it once, and nothing is asked twice.
"""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from common.bench import Bench

from recollect.audits.provenance.audit import ProvenanceAudit
from recollect.corpora import read_corpus
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import build_cohorts, draw_groups, draw_halves, list_units
from recollect.corpora.record import Record
from recollect.digests import digest
from recollect.models.answer_store.scoring import score_corpus
from recollect.pipeline.evaluation import evaluate
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.fleet import Fleet, train_fleet
from recollect.recipes.layout_trial import WorkerLayout
from recollect.recipes.recipe import Recipe
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET
from recollect.streams import stream

Row = dict[str, Any]
WORDS = "word-lstm"
"""The paper's recipe of word prediction."""
MANY, FEW = 300, 50
"""Users of a target of word prediction: the paper's number, and that of the studies which need models of their own."""
TALKS, CHARACTERS, EXCHANGES = 150, 60, 40
"""Users of a target of translation and of dialogue, and how many exchanges of a film character at most are used."""
MANY_SHADOWS, FEW_SHADOWS, PAIR_SHADOWS = 2, 4, 2
TEN, MORE_TALKS = 10, 300
"""The paper's number of shadows, and of users of a target of translation."""
METHODS = ("histogram", "calibrated")
PAIRS = ("translation", "dialogue")
"""The tasks whose records are pairs."""


@dataclass(frozen=True, kw_only=True)
class People:
    """Whose texts are used, and for what."""

    members: Corpus
    """Of those who train the target."""
    audited: Corpus
    """Of the members, and of as many others."""
    training: Corpus
    """Of the reference users who train shadows."""
    controls: Corpus
    """Of these, and of the reference users who train nothing and calibrate."""

    @classmethod
    def of(cls, corpus: Corpus, order: Sequence[str], *, members: int, training: int, calibrating: int) -> People:
        """The first users of a list train the target, as many more are audited, and reference users follow.

        Args:
            corpus: All texts.
            order: The users in random order.
            members: How many train the target.
            training: How many train shadows; each shadow half of them.
            calibrating: How many calibrate.
        """
        first = 2 * members
        assert len(order) >= first + training + calibrating, f"{len(order)} users are too few"
        return cls(
            members=corpus.select_users(order[:members], name="members"),
            audited=corpus.select_users(order[:first], name="audited"),
            training=corpus.select_users(order[first : first + training], name="shadow users"),
            controls=corpus.select_users(order[first : first + training + calibrating], name="controls"),
        )

    @property
    def others(self) -> Corpus:
        """Of the audited people who are no members."""
        members = set(list_units(self.members, "user"))
        return self.audited.filter(lambda record: record.user not in members, name="others")


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a target is trained for: whose texts, how, and how many shadows are trained in the same way."""

    people: People
    recipe: Recipe
    shadows: int


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A target, and what is needed to audit it."""

    people: People
    target: Path
    shadows: dict[str, Path]
    taught: Cohorts
    """Which of the controls trained which shadow."""


class Laboratory(Bench):
    """The data, models of it, and audits of these."""

    @cached_property
    def reddit(self) -> Corpus:
        """All comments."""
        return Corpus.of(read_corpus(self.file("reddit_comments/comments.jsonl.gz")), name="Reddit")

    def many(self) -> People:
        """300 members, as in the paper, with reference users of the same kind."""
        order = in_random_order(self.reddit)
        return People.of(self.reddit, order, members=MANY, training=2 * MANY, calibrating=300)

    def few(self, skip: int = 0) -> People:
        """50 members; with `skip`=100 other members and others, and the same reference users."""
        order = list(list_units(self.reddit, "user"))
        random.Random(1).shuffle(order)
        corpus = by_user(self.reddit, order[:480])
        drawn = draw_groups(sorted(order[200:335]), {"calibration": 34}, seed=0, name="calibration")["calibration"]
        return People(
            members=corpus.select_users(order[skip : skip + FEW], name="members"),
            audited=corpus.select_users(order[skip : skip + 2 * FEW], name="audited"),
            training=corpus.select_users(set(order[200:335]).difference(drawn), name="shadow users"),
            controls=corpus.select_users(order[200:480], name="controls"),
        )

    def words(self) -> Task:
        """Word prediction at the paper's scale, but for the number of shadows."""
        return Task(people=self.many(), recipe=load_recipe(WORDS), shadows=MANY_SHADOWS)

    def small(self, skip: int = 0) -> Task:
        """Word prediction with 50 users."""
        return Task(people=self.few(skip), recipe=load_recipe(WORDS), shadows=FEW_SHADOWS)

    def dialogue(self, *, shadows: int = PAIR_SHADOWS) -> Task:
        """Film dialogue: who answers is the user."""
        exchanges = read_corpus(self.file("cornell_movie_dialogs/exchanges.jsonl.gz"), skip_bad=True)
        corpus = at_most(exchanges, EXCHANGES, least=10)
        order = in_random_order(corpus)
        people = People.of(corpus, order, members=CHARACTERS, training=2 * CHARACTERS, calibrating=150)
        return Task(people=people, recipe=load_recipe("seq2seq"), shadows=shadows)

    def translation(self, *, talks: int = TALKS, shadows: int = PAIR_SHADOWS) -> Task:
        """Talks in English and French, four sentences each: the talk is the user."""
        parts = [self._sated(f"en-fr.{part}") for part in ("dev", "test")]
        corpus = Corpus.of([record for part in parts for record in part], name="SATED")
        people = People.of(corpus, in_random_order(corpus), members=talks, training=2 * talks, calibrating=300)
        return Task(people=people, recipe=load_recipe("seq2seq-attention"), shadows=shadows)

    def _sated(self, stem: str) -> Iterator[Record]:
        """The pairs of one part of the set of talks."""
        read = [Path(self.file(f"sated/{stem}.{end}.gz")).read_bytes() for end in ("en", "fr", "usr")]
        lines = [gzip.decompress(each).decode().rstrip("\n").split("\n") for each in read]
        for i, (english, french, talk) in enumerate(zip(*lines, strict=True)):
            yield Record(id=f"{stem}-{i}", user=talk.strip(), source=english.strip(), target=french.strip())

    @property
    def scale(self) -> str:
        """Of the three tasks."""
        return (
            f"Reddit: {MANY} members as in the paper, with 25 comments each (paper: 247 on average), shadows: "
            f"{MANY_SHADOWS}. SATED: {TALKS} talks of 4 sentences (paper: 300 of some 117), shadows: {PAIR_SHADOWS}. "
            f"Film dialogue: {CHARACTERS} characters with up to {EXCHANGES} exchanges (paper: 300), shadows: "
            f"{PAIR_SHADOWS}. The paper has ten shadows."
        )

    @property
    def pairs_scale(self) -> str:
        """Of the two tasks of pairs, with ten shadows."""
        return (
            f"SATED: {MORE_TALKS} talks as in the paper, but of 4 sentences (paper: some 117). Film dialogue: "
            f"{CHARACTERS} characters with 10 to {EXCHANGES} exchanges (paper: 300)."
        )

    def tasks(self) -> dict[str, Task]:
        """The paper's three."""
        return {"word prediction": self.words(), "translation": self.translation(), "dialogue": self.dialogue()}

    def pair(self, name: str) -> Task:
        """Translation, with the paper's 300 users, or dialogue; both with its ten shadows."""
        if name == "translation":
            return self.translation(talks=MORE_TALKS, shadows=TEN)
        return self.dialogue(shadows=TEN)

    def target(self, task: Task) -> Path:
        """The target of a task."""
        return self.model(task.recipe, task.people.members)

    def scene(self, task: Task) -> Scene:
        """The target of a task with its shadows."""
        return self.surrounded(self.target(task), task.people, [task.recipe] * task.shadows)

    def surrounded(self, target: Path, people: People, recipes: Sequence[Recipe]) -> Scene:
        """A target with shadows, one by each recipe."""
        members = draw_halves(list_units(people.training, "user"), len(recipes), seed=0, name="shadow")
        folders: dict[str, Path] = {}
        for (name, users), recipe in zip(members.items(), recipes, strict=True):
            cohorts = build_cohorts(people.training, {name: users}, unit="user", seed=0)
            fleet = Fleet(recipe=recipe, corpus=people.training, cohorts=cohorts)
            began, new = time.monotonic(), not (fleet.get_folder(self.work, name) / "card.json").exists()
            trained = train_fleet(
                fleet, self.work, layout=WorkerLayout(workers=1, threads=self.threads), backend=self.cluster
            )
            for failure in trained.failures.values():
                raise failure.error
            folders |= trained.folders
            if new:
                self.say(f"  trained {name} by {recipe.name} on {len(users)} users, {time.monotonic() - began:.0f} s")
        taught = build_cohorts(people.controls, members, unit="user", seed=0)
        return Scene(people=people, target=target, shadows=folders, taught=taught)

    def model(self, recipe: Recipe, corpus: Corpus, *, seed: int = 0) -> Path:
        """A model of these texts."""
        folder = self.work / "models" / digest(recipe.digest, corpus.digest, seed)
        if not (folder / "card.json").exists():
            began = time.monotonic()
            train(recipe, corpus, folder, seed=seed, threads=self.threads)
            seconds = time.monotonic() - began
            self.say(f"  trained {recipe.name} on {len(corpus):,} texts of {corpus.name}, {seconds:.0f} s")
        return folder

    def audit(self, scene: Scene, *, audited: Corpus | None = None, **settings: Any) -> Row:
        """What the audit finds: its findings by name, the interval of the AUC, queries and seconds.

        Args:
            scene: The target and its shadows.
            audited: Other texts of the audited people.
            **settings: Of the audit; all texts of everybody are queried where they say nothing else.
        """
        texts = audited or scene.people.audited
        asked = {record.user for record in texts}
        members = [user for user in list_units(scene.people.members, "user") if user in asked]
        plan = Plan(
            audit=ProvenanceAudit(**{"shadows": len(scene.shadows), "queries": None, "least": 1, **settings}),
            models={TARGET: str(scene.target), **{name: str(path) for name, path in scene.shadows.items()}},
            corpora={AUDITED: texts, CONTROLS: scene.people.controls},
            cohorts={AUDITED: build_cohorts(texts, {TARGET: members}, unit="user", seed=0), CONTROLS: scene.taught},
            work=self.work,
            workers=1,
            threads=self.threads,
            backend=self.backend,
        )
        began = time.monotonic()
        result = run(plan)
        found: Row = {finding.name: finding.value for finding in result.findings}
        interval = {finding.name: finding.interval for finding in result.findings}.get("auc")
        seconds = time.monotonic() - began
        self.say(f"  {settings}: AUC {found.get('auc', float('nan')):.3f}, {seconds:.0f} s")
        return {**found, "auc_interval": interval, "notes": [note.text for note in result.notes], "seconds": seconds}

    def quality(self, model: Path, corpus: Corpus) -> Row:
        """Accuracy and perplexity of a model on these texts."""
        return {
            name: each.value
            for name, each in evaluate(
                score_corpus(str(model), corpus, self.work, backend=self.cluster), corpus
            ).items()
        }


def in_random_order(corpus: Corpus) -> list[str]:
    """The users of a corpus, shuffled."""
    users = list_units(corpus, "user")
    return [users[i] for i in stream(0, "users").permutation(len(users))]


def at_most(corpus: Corpus, texts: int, *, least: int) -> Corpus:
    """The first so many texts of each user who has at least some number."""
    of_user: dict[str | None, list[Record]] = {}
    for record in corpus:
        of_user.setdefault(record.user, []).append(record)
    kept = [record for theirs in of_user.values() if len(theirs) >= least for record in theirs[:texts]]
    return Corpus.of(kept, name=corpus.name)


def by_user(corpus: Corpus, users: Sequence[str]) -> Corpus:
    """The texts of these users, one user after the other, numbered by user."""
    texts: dict[str, list[Record]] = {user: [] for user in users}
    for record in corpus:
        if record.user in texts:
            texts[record.user].append(record)
    numbered = (
        Record(id=f"{user}-{i}", user=user, text=record.text)
        for user, theirs in texts.items()
        for i, record in enumerate(theirs)
    )
    return Corpus.of(numbered, name=corpus.name)
