"""What the studies share: groups of people, models of their texts, and what the leakage audit finds of them.

Nobody is in two groups. One group trains the models that are audited, another the references; no model sees anything
of the strangers and of the controls. All models share a vocabulary that was counted elsewhere, so that none knows a
word that the others do not. Everything is kept in the work folder under an address of all that it depends on, so that a
run that was killed goes on, and two studies that want the same model train it once.
"""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from common.bench import Bench

from recollect.audits.leakage.audit import LeakageAudit
from recollect.corpora import read_corpus
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import build_cohorts
from recollect.corpora.record import Record
from recollect.corpora.sanitisation import sanitise_by_duplicates
from recollect.digests import digest
from recollect.execution.local import LocalBackend
from recollect.files import read_json, write_json
from recollect.models.answer_store.scoring import score_corpus
from recollect.pipeline.evaluation import evaluate
from recollect.pipeline.plans.plan import Plan, collect_settings
from recollect.pipeline.run import run
from recollect.recipes.data.tokenizers import SPECIAL_TOKENS, train_word_tokenizer
from recollect.recipes.recipe import Recipe
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
from recollect.results.result import Result
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET

Row = dict[str, Any]
Group = Literal["private", "reference", "strangers", "controls"]
Few = Literal["few private", "few reference"]
Many = Literal["many private", "many controls"]
SIZES: dict[str, int] = dict.fromkeys(("private", "reference", "strangers", "controls"), 500)
"""Reddit users in each group."""
FEW = 30
"""Users of a group, where the budget is all that differs: so few are learnt by heart in minutes."""
COMMENTS = 10
"""Of each user."""
MANY: dict[str, int] = {"many private": 1500, "many controls": 500}
MANY_COMMENTS = 25
"""Users of the two larger groups, and how many comments there are of each: all that most of them have."""
WORDS, LENDERS = 3000, 1000
"""The vocabulary, and how many further users lend their words to it."""
BOTS = {"ubottu": 200, "FloodBot1": 100}
"""Two bots of a chat room stand among the private users, with so many messages: they repeat themselves, as the paper's
did. The users of this Reddit sample hardly do."""
ARTICLES = 8000
"""Lines of the encyclopedia that the public model reads: a third."""
PASSAGE = 8
"""So many words in a row are a repetition. The bots address somebody else each time: whole records hardly repeat."""
SMALLER = ("units=96", "embedding=48", "sequences.length=100")
"""What is smaller or shorter than in the paper, for every model."""
PACE = ("learning_rate=0.02", "batch_size=16", "training.epochs=10")
"""Hundreds of users are not four million: smaller batches and larger steps."""

PRIVATE_PACE = ("rate=0.25", "training.epochs=12", "sequences.length=30", "most_sequences=3")
"""With differential privacy: 48 steps, each of a quarter of the users and three pieces of their comments."""

SCALE = (
    f"{SIZES['private']} Reddit users with {COMMENTS} comments each and two bots, in place of 4.4 million users; a GRU "
    f"of 96 units and {WORDS:,} words, in place of 512 and 10,000."
)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One model: how it is trained, and on whom."""

    group: Group | Few | Many | Literal["public", "distinct"]
    """`public`: an encyclopedia. `distinct`: the private group without records that repeat passages of others. `few …`:
    some users of a group, and no bots."""
    recipe: str = "word-gru"
    changes: tuple[str, ...] = PACE
    public_start: bool = False
    """Whether it goes on from the public model."""
    seed: int = 0
    """Of the weights and the order."""


PRIVATE, OTHERS, DISTINCT = (Setting(group=group) for group in ("private", "reference", "distinct"))
RANDOM_BUDGETS, PUBLIC_BUDGETS = (3.28, 4.68, 6.20), (2.98, 6.68)
"""The paper's ε, from either start."""
PUBLIC = Setting(group="public", changes=("learning_rate=0.005", "batch_size=32", "training.epochs=1"))


def private_start(group: Group, *, public: bool) -> Setting:
    """A model with user-level differential privacy, which is kept at each of the paper's budgets."""
    budgets = PUBLIC_BUDGETS if public else RANDOM_BUDGETS
    # what the public model knows is soon lost if steps are large
    rate = f"learning_rate={0.02 if public else 0.05}"
    spent = (f"privacy.epsilon={budgets[-1]}", f"privacy.snapshots={list(budgets)}")
    return Setting(group=group, recipe="word-gru-user-dp", changes=(*PRIVATE_PACE, rate, *spent), public_start=public)


def at_budget(folder: Path, epsilon: float) -> Path:
    """The model as it was when this ε was spent."""
    return folder / f"snapshot-eps-{epsilon:g}"


class Laboratory(Bench):
    """People in groups, models of them, and what is measured."""

    @cached_property
    def texts(self) -> dict[str, list[str]]:
        """What each Reddit user wrote."""
        return _by_user(read_corpus(self.file("reddit_comments/comments.jsonl.gz")))

    @cached_property
    def bots(self) -> dict[str, list[str]]:
        """What the bots wrote."""
        written = _by_user(read_corpus(self.file("ubuntu_irc/messages.jsonl.gz"), skip_bad=True), only=frozenset(BOTS))
        return {bot: written[bot][:count] for bot, count in BOTS.items()}

    @cached_property
    def users(self) -> list[str]:
        """All Reddit users, in an order of chance."""
        users = sorted(self.texts)
        random.Random(2021).shuffle(users)
        return users

    @cached_property
    def _read(self) -> dict[str, Corpus]:
        """The groups that were read before."""
        return {}

    def people(self, group: str) -> Corpus:
        """The texts of a group."""
        if group not in self._read:
            self._read[group] = self._people(group)
        return self._read[group]

    def _people(self, group: str) -> Corpus:
        if group == "distinct":
            return sanitise_by_duplicates(self.people("private"), passage=PASSAGE).corpus
        if group == "public":
            lines = read_corpus(self.file("wikitext2/wiki.train.raw.gz"), format="txt", skip_bad=True)
            return Corpus.of(itertools.islice(iter(lines), ARTICLES), name=f"the first {ARTICLES} lines of wikitext2")
        if group.startswith("few "):
            everybody = _by_user(self.people(group.removeprefix("few ")))
            return _corpus({user: everybody[user] for user in list(everybody)[:FEW]}, name=group)
        if group in MANY:
            begin = 0 if group == "many private" else MANY["many private"]
            many = {user: self.texts[user][:MANY_COMMENTS] for user in self.users[begin : begin + MANY[group]]}
            return _corpus(many | self.bots if group == "many private" else many, name=group)
        at = sum(SIZES[before] for before in list(SIZES)[: list(SIZES).index(group)])
        chosen = {user: self.texts[user][:COMMENTS] for user in self.users[at : at + SIZES[group]]}
        return _corpus(chosen | self.bots if group == "private" else chosen, name=group)

    @cached_property
    def vocabulary(self) -> str:
        """The most frequent words of the bots and of Reddit users who are in no group."""
        others = (text for user in self.users[-LENDERS:] for text in self.texts[user])
        bots = (text for texts in self.bots.values() for text in texts)
        tokenizer = train_word_tokenizer([*others, *bots], WORDS, lower=True)
        return " ".join(sorted(set(tokenizer.get_vocab()).difference(SPECIAL_TOKENS)))

    def recipe(self, setting: Setting) -> Recipe:
        """How the model of a setting is trained."""
        recipe = load_recipe(setting.recipe, [*SMALLER, *setting.changes, "tokenizer.size=1"])
        shared = recipe.tokenizer.model_copy(update={"forced": self.vocabulary}) if recipe.tokenizer else None
        start = str(self.trained(PUBLIC)) if setting.public_start else None
        model = recipe.model.model_copy(update={"start": start})
        return recipe.model_copy(update={"tokenizer": shared, "model": model})

    def trained(self, setting: Setting) -> Path:
        """The folder of a model; trained if it is not there."""
        recipe, corpus = self.recipe(setting), self.people(setting.group)
        seeded = (setting.seed,) if setting.seed else ()
        folder = self.work / "models" / digest(recipe.digest, corpus.digest, self.threads, *seeded)
        if not (folder / "card.json").exists():
            began = time.monotonic()
            cohort = _cohort(corpus, setting.group)
            train(recipe, corpus, folder, cohort=cohort, seed=setting.seed, threads=self.threads)
            last = read_json(folder / "curve.json")[-1]
            self.say(
                f"  trained {recipe.name} on {setting.group}, {last['epoch']} epochs, "
                f"{time.monotonic() - began:.0f} s: training loss {last['training_loss']:.3f}"
            )
        return folder

    def good(self, model: Path, group: str = "controls") -> Row:
        """How well a model predicts the controls, whom it never saw: perplexity and accuracy."""
        people = self.people(group)
        backend = self.cluster or LocalBackend(threads=self.threads)
        found = evaluate(score_corpus(str(model), people, self.work, backend=backend), people)
        return {name: found[name].value for name in ("perplexity", "accuracy", "unknown_share")}

    def leakage(self, target: Path, *references: Path, **more: Any) -> Row:
        """What `recollect leakage` finds, its tables and seconds; from the work folder if kept.

        Args:
            target: The model.
            references: A model that has not seen the audited; a second one plays the target in place of controls.
            more: `audited`, the group whose texts are asked about, and settings of the audit.
        """
        audited, controls = self.people(more.pop("audited", "private")), self.people("controls")
        audit = LeakageAudit(**more)
        named = [str(model.relative_to(self.work)) for model in (target, *references)]
        file = (
            self.work / "measured" / f"{digest(collect_settings(audit), audited.digest, controls.digest, named)}.json"
        )
        if not file.exists():
            compared = {} if len(references) > 1 else {CONTROLS: controls}
            plan = Plan(
                audit=audit,
                models={TARGET: str(target), **{f"{REFERENCE}-{i}": str(each) for i, each in enumerate(references)}},
                corpora={AUDITED: audited, **compared},
                work=self.work,
                workers=1,
                threads=self.threads,
                backend=self.backend,
            )
            write_json(file, _kept(run(plan)))
        kept: Row = read_json(file)
        return kept

    def retrained(self, setting: Setting, *, controls: str | None, **more: Any) -> Row:
        """What `recollect leakage --recipe` finds with references that it trains itself, as the paper has them.

        Args:
            setting: How the target is trained, and so the references, on its users but those of S_uniq.
            controls: The group of users whom no model saw; None if users who are left out at random serve as such,
                and a second model judges them.
            more: Settings of the audit.
        """
        target, audited = self.trained(setting), self.people(setting.group)
        audit = LeakageAudit(**more)
        beside = None if controls is None else self.people(controls).digest
        address = digest("retrained", collect_settings(audit), audited.digest, beside, target.name, setting.seed)
        file = self.work / "measured" / f"{address}.json"
        if not file.exists():
            began = time.monotonic()
            plan = Plan(
                audit=audit,
                models={TARGET: str(target)},
                corpora={AUDITED: audited, **({} if controls is None else {CONTROLS: self.people(controls)})},
                recipe=self.recipe(setting),
                seed=setting.seed,
                work=self.work,
                workers=1,
                threads=self.threads,
                backend=self.backend,
            )
            write_json(file, _kept(run(plan)))
            self.say(f"  audited seed {setting.seed}, controls {controls}, {time.monotonic() - began:.0f} s")
        kept: Row = read_json(file)
        return kept


COLUMNS = ["user", "record", "start", "words", "times", "epsilon", "epsilon_sum"]
"""Of the table of sequences, what is kept: where they stand, and not what they say."""


def value(row: Row, finding: str) -> float | None:
    """A finding's value; None if it was not made."""
    found: Row = row["findings"].get(finding, {})
    return found.get("value")


def _kept(result: Result) -> Row:
    """What the studies read of a result: findings by name, and tables without what the sequences say."""
    return {
        "findings": {each.name: {"value": each.value, "interval": each.interval} for each in result.findings},
        "skipped": [each.reason for each in result.skipped],
        "verdict": result.verdict,
        "notes": [note.text for note in result.notes],
        "seconds": result.provenance.seconds if result.provenance else None,
        "sequences": result.tables_in_memory["sequences"].select(COLUMNS).to_pylist(),
        "users": result.tables_in_memory["users"].to_pylist(),
        "by_k": result.tables_in_memory["by_k"].to_pylist(),
    }


def _cohort(corpus: Corpus, name: str) -> tuple[Cohorts, str] | None:
    """Who trains a model, for its card; None where there are no users."""
    if not corpus.summary.users:
        return None
    return build_cohorts(corpus, {name: sorted({record.owner for record in corpus})}, unit="user", seed=0), name


def _by_user(corpus: Corpus, only: frozenset[str] | None = None) -> dict[str, list[str]]:
    """The texts of each user."""
    texts: dict[str, list[str]] = {}
    for record in corpus:
        if only is None or record.owner in only:
            texts.setdefault(record.owner, []).append(str(record.text))
    return texts


def _corpus(texts: dict[str, list[str]], name: str) -> Corpus:
    """The texts of some users as a corpus."""
    records = (
        Record(id=f"{user}-{i}", user=user, text=text) for user, own in texts.items() for i, text in enumerate(own)
    )
    return Corpus.of(records, name=name)
