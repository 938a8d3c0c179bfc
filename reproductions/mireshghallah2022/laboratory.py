"""What the studies share: notes in groups, masked models of them, and what the membership audit finds.

The records are sentences of transcribed medical notes, and a note stands for a patient. The target goes on from a
general clinical model, which was trained on other notes and is the reference, as PubMed-BERT was in the paper. No model
sees the other groups: some are non-members, some the population that sets the thresholds. All models share one
vocabulary, as the paper's do, so both read the same masked symbols. Everything is kept in the work folder under an
address of all that it depends on, so that a run that was killed goes on, and two studies that want the same model train
it once.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from common.bench import Bench
from faker import Faker

from recollect.audits.membership.audit import MembershipAudit
from recollect.corpora import Columns, read_corpus
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import build_cohorts, draw_groups
from recollect.corpora.record import Record
from recollect.corpora.segmentation import Split
from recollect.digests import digest
from recollect.files import read_json, write_json
from recollect.models.loading.pretrained import read_tokenizer
from recollect.models.model import Question
from recollect.pipeline.plans.plan import Plan, collect_settings
from recollect.pipeline.plans.refs import ModelRef
from recollect.pipeline.run import run
from recollect.recipes.model_builder import DataFacts, build_model
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET

Row = dict[str, Any]
Parts = tuple[Corpus, Corpus, Corpus]
NOTES = {"members": 60, "others": 90, "population": 90, "general": 200}
"""So many notes train the target, are its non-members, set the thresholds, and train the reference."""
SENTENCES = (10, 16)
"""Of each note: at least, and at most the first so many."""
WORDS = (10, 60)
"""Of a sentence."""
LONG = 20
"""Words from which on a sentence is long: the paper's 20 to 60 tokens, which are also the records of its Table 2."""
REPORTS = 8
"""So many radiology reports are one made-up patient: a report has two sentences that are long enough, a note 14."""
PATIENTS = 90
"""Made-up patients of radiology reports, the second kind of non-members."""
ARTICLES = 3000
"""Sentences of an encyclopedia, for a model of another domain."""
PIECES = 2000
"""Of the vocabulary."""
FPR = 0.1
"""The paper's false positive rate."""
PATTERNS = 10
"""How often each record is masked: the paper's K, of which it is silent."""
GENERAL_EPOCHS, EPOCHS, LONGER = 8, 12, 24
PACE = ("training.learning_rate=0.002", "training.batch_size=16", "sequences.masked=0.4")
"""Of all trainings. BERT hides 15 % of the symbols, as the audit does; with 40 % one pass teaches more."""


def sized(units: int, layers: int) -> tuple[str, ...]:
    """The settings of a BERT of a size, without dropout: small models forget soon enough."""
    config = {
        "hidden_size": units,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "intermediate_size": 4 * units,
        "max_position_embeddings": 128,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    return (f"model.config={json.dumps(config)}", f"tokenizer.size={PIECES}", *PACE)


SMALL, SMALLER = sized(64, 2), sized(32, 2)
SCALE = (
    f"BERT of 2 layers of 64 and {PIECES:,} pieces, in place of BERT-base; {NOTES['members']} notes of MTSamples, "
    f"{EPOCHS} epochs, in place of MIMIC-III; the reference is the same network after {NOTES['general']} other notes, "
    "from which the target went on."
)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One target: how large, how long trained, and what its records look like."""

    size: tuple[str, ...] = SMALL
    epochs: int = EPOCHS
    names: bool = False
    """Whether a made-up name stands before every record."""


@dataclass(frozen=True, kw_only=True)
class Laboratory(Bench):
    """Notes, models of them, and what is measured."""

    sizes: Mapping[str, int] = field(default_factory=lambda: dict(NOTES))
    """Notes of each group."""
    seed: int = 0
    """Of the groups and of the weights."""
    patterns: int = PATTERNS
    """How often each record is masked: the paper's K."""

    @cached_property
    def notes(self) -> dict[str, Corpus]:
        """Sentences of transcribed notes in groups; no note is in two of them, and no sentence stands in two."""
        read = read_corpus(
            self.file("mtsamples/notes.jsonl.gz"), columns=Columns(user="id", id=""), split=Split(minimum=WORDS[0])
        )
        owned: dict[str, list[Record]] = {}
        for record in _distinct(read):
            owned.setdefault(record.owner, []).append(record)
        least, most = SENTENCES
        parted = draw_groups(
            sorted(user for user, mine in owned.items() if len(mine) >= least), self.sizes, seed=self.seed, name="notes"
        )
        return {
            group: Corpus.of([record for user in users for record in owned[user][:most]], name=group)
            for group, users in parted.items()
        }

    @cached_property
    def reports(self) -> Corpus:
        """Sentences of radiology reports of made-up patients, each of a few reports."""
        read = read_corpus(self.file("indiana_cxr_reports/reports.jsonl.gz"), split=Split(minimum=WORDS[0]))
        found = _distinct(read)
        place = {user: i // REPORTS for i, user in enumerate(dict.fromkeys(record.owner for record in found))}
        near = [record for record in found if place[record.owner] < PATIENTS]
        return Corpus.of(
            [replace(r, id=f"report-{r.id}", user=f"patient-{place[r.owner]}") for r in near], name="reports"
        )

    def blank(self, size: tuple[str, ...] = SMALL) -> Path:
        """An untrained model with the general model's vocabulary, so that a model of other texts reads as it does."""
        folder = self.work / "models" / digest("blank", self.general(size).name)
        if not (folder / "config.json").exists():
            recipe = load_recipe("masked-transformer", list(size))
            tokenizer = read_tokenizer(self.general(size), "the general model")
            build_model(recipe, tokenizer, DataFacts(), seed=1).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        return folder

    def general(self, size: tuple[str, ...] = SMALL) -> Path:
        """The general clinical model of a size: the reference, from which targets go on."""
        return self.trained((*size, f"training.epochs={GENERAL_EPOCHS}"), self.notes["general"])

    def encyclopedia(self) -> Path:
        """A model of quite other texts, as BERT-base was in the paper."""
        lines = read_corpus(
            self.file("wikitext2/wiki.train.raw.gz"), format="txt", skip_bad=True, split=Split(minimum=WORDS[0])
        )
        corpus = Corpus.of(
            itertools.islice((r for r in lines if len(str(r.text).split()) <= WORDS[1]), ARTICLES), name="encyclopedia"
        )
        return self.trained((*PACE, f"training.epochs={GENERAL_EPOCHS}", f"model.start={self.blank()}"), corpus)

    def target(self, setting: Setting) -> Path:
        """The model that is audited: the general one, trained further on the members' sentences."""
        changes = (*PACE, f"training.epochs={setting.epochs}", f"model.start={self.general(setting.size)}")
        return self.trained(changes, self.parts(setting)[0])

    def trained(self, changes: Sequence[str], corpus: Corpus) -> Path:
        """A model of a corpus."""
        recipe = load_recipe("masked-transformer", list(changes))
        seeded = (self.seed,) if self.seed else ()
        folder = self.work / "models" / digest(recipe.digest, corpus.digest, self.threads, *seeded)
        if not (folder / "card.json").exists():
            began = time.monotonic()
            train(recipe, corpus, folder, seed=self.seed, threads=self.threads)
            loss = read_json(folder / "curve.json")[-1]["training_loss"]
            self.say(f"  trained on {len(corpus):,} records, {time.monotonic() - began:.0f} s: loss {loss:.3f}")
        return folder

    def told(self, models: dict[str, Path], parts: Parts, audit: MembershipAudit) -> Row:
        """What the audit finds with the truth known, from the work folder if kept.

        Args:
            models: By the part that each plays; the target and a reference at least.
            parts: Members, non-members, and the population.
            audit: The audit.
        """
        members, others, population = parts
        named = {part: model.name for part, model in models.items()}
        masked = () if self.patterns == PATTERNS else (self.patterns,)
        address = digest(collect_settings(audit), named, [c.digest for c in parts], KEPT, *masked)
        file = self.work / "measured" / f"{address}.json"
        if not file.exists():
            audited = Corpus.of([*members, *others], name="candidates")
            truth = build_cohorts(audited, {TARGET: sorted({r.owner for r in members})}, unit="user", seed=0)
            question = Question(patterns=self.patterns, window=128)
            result = run(
                Plan(
                    audit=audit,
                    models={part: ModelRef.from_question(str(model), question) for part, model in models.items()},
                    corpora={AUDITED: audited, CONTROLS: population},
                    cohorts={AUDITED: truth},
                    work=self.work,
                    workers=1,
                    threads=self.threads,
                    backend=self.backend,
                )
            )
            findings = {each.name: [each.value, each.interval] for each in result.findings}
            tables = {
                name: result.tables_in_memory[name].to_pylist() for name in KEPT if name in result.tables_in_memory
            }
            write_json(file, {"findings": findings, "tables": tables, "notes": [note.text for note in result.notes]})
        kept: Row = read_json(file)
        return kept

    def attack(self, setting: Setting, parts: Parts, **settings: Any) -> Row:
        """The paper's attack on a target, with its general model as the reference."""
        audit = MembershipAudit(**{"signal": "ratio", "fpr": (FPR,), **settings})
        return self.told({TARGET: self.target(setting), REFERENCE: self.general(setting.size)}, parts, audit)

    def parts(self, setting: Setting, wanted: Callable[[Record], bool] | None = None) -> Parts:
        """Members, non-members and population of a setting, or those of their records of which something is true."""
        plain = (chosen(self.notes[name], wanted) for name in ("members", "others", "population"))
        members, others, population = (named(each) if setting.names else each for each in plain)
        return members, others, population


KEPT = ("roc", "susceptibility", "candidates", "thresholds")
"""The tables of a result that are kept."""


def value(row: Row, name: str) -> float | None:
    """A finding of an attack."""
    found = row["findings"].get(name)
    return None if found is None else float(found[0])


def long(record: Record) -> bool:
    """Whether a record is of 20 to 60 words, as those of the paper's Table 2 are."""
    return len(str(record.text).split()) >= LONG


def chosen(corpus: Corpus, wanted: Callable[[Record], bool] | None) -> Corpus:
    """The records of a corpus of which something is true."""
    return corpus if wanted is None else Corpus.of([r for r in corpus if wanted(r)], name=corpus.name)


def named(corpus: Corpus) -> Corpus:
    """The same with its patient's name, which is made up, before every sentence."""

    def name(user: str) -> str:
        faker = Faker("en_US")
        faker.seed_instance(int(digest(user), 16))
        return f"{faker.first_name()} {faker.last_name()}"

    names = {user: name(user) for user in sorted({record.owner for record in corpus})}
    return Corpus.of([replace(r, text=f"{names[r.owner]} {r.text}") for r in corpus], name=f"{corpus.name}, named")


def _distinct(records: Iterable[Record]) -> list[Record]:
    """Records of a fitting length, every text once."""
    found = {str(record.text): record for record in records}
    return [record for text, record in found.items() if len(text.split()) <= WORDS[1]]
