"""A small synthetic world with known ground truth: people, what they wrote, and fake models trained on some of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from recollect import labels
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.access import Access
from recollect.models.answer_store.store import split_into_store_blocks
from recollect.models.answers import Answers
from recollect.models.limited import limited
from recollect.models.model import Kind, Model
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null, Uniform

RECORDS_EACH = 3
WORDS = 300
SHADOWS = 8


@dataclass(frozen=True)
class WorldAnswers:
    """Answers straight from a model, kept nowhere: the answer store of tests."""

    model: Model
    block: int = 64
    """Records scored at once."""

    @property
    def access(self) -> Access:
        """What the model shows."""
        return self.model.access

    def get_answers(self, records: Iterable[Record]) -> Answers:
        """The answers to these records, each content once, in their order."""
        return self.model.answer(list({record.digest: record for record in records}.values()))

    def iter_blocks(self, records: Iterable[Record]) -> Iterator[tuple[list[Record], Answers]]:
        """The records block by block with their answers."""
        for block in split_into_store_blocks(records, self.block):
            yield block, self.get_answers(block)


@dataclass(frozen=True, kw_only=True)
class World:
    """People, some in the target's training set (`member-…`), some not (`other-…`), and some who serve as controls.

    All write alike, so that nothing but a model's memory tells members from others.
    """

    kind: Kind = "causal"
    """What the models of this world predict."""
    members: int = 24
    """How many of the audited people are in the target's training set."""
    others: int = 24
    """How many of them are not."""
    controls: int = 24
    """How many more people are known not to be in it."""
    seed: int = 0
    block: int = 64
    """Records scored at once."""
    backwards: bool = False
    """Every corpus in the opposite order."""

    @cached_property
    def corpora(self) -> dict[str, Corpus]:
        """The corpora by role; members and others are mixed."""
        audited = [
            *self._build_records(labels.FAKE_MEMBER, self.members),
            *self._build_records(labels.FAKE_OTHER, self.others),
        ]
        mixed = [audited[i] for i in stream(self.seed, labels.STREAM_FAKE_ORDER).permutation(len(audited))]
        return {
            AUDITED: self._build_corpus(mixed),
            CONTROLS: self._build_corpus(self._build_records(labels.FAKE_CONTROL, self.controls)),
        }

    @cached_property
    def member_records(self) -> list[Record]:
        """The records in the target's training set."""
        return [record for record in self.corpora[AUDITED] if record.owner.startswith("member")]

    def build_memoriser(self) -> Memoriser:
        """A target that has memorised the members' records."""
        return Memoriser(self.member_records, otherwise=self._build_null_model(0))

    def build_null(self) -> Null:
        """A target that was trained on nobody's records."""
        return self._build_null_model(0)

    def build_uniform(self) -> Uniform:
        """A target that knows nothing at all."""
        return Uniform(vocabulary=self._vocabulary, kind=self.kind)

    def build_evidence(self, target: Model) -> Evidence:
        """This target with a reference, shadows and both corpora, everything scored by every model."""
        shadows = self._build_shadow_cohorts()
        models: dict[str, Model] = {
            TARGET: target,
            "reference": self._build_null_model(1),
            **self.train(shadows, self.corpora[AUDITED]),
        }
        answers = {
            (model, corpus): WorldAnswers(models[model], self.block) for model in models for corpus in self.corpora
        }
        return Evidence(models=models, corpora=self.corpora, answers=answers, cohorts={AUDITED: shadows})

    def limit_access(self, evidence: Evidence, max_access: Mapping[str, Access]) -> Evidence:
        """The same evidence from models that show at most so much, by role."""
        limits = {name: access for role, access in max_access.items() for name in evidence.models_of_role(role)}
        models = {
            name: limited(model, limits[name]) if name in limits else model for name, model in evidence.models.items()
        }
        answers = {(model, corpus): WorldAnswers(models[model], self.block) for model, corpus in evidence.answers}
        return replace(evidence, models=models, answers=answers)

    def build_given(self, target: Model) -> Evidence:
        """What a user would give: this target, a reference, both corpora, and the ground truth."""
        members = {TARGET: sorted({record.owner for record in self.member_records})}
        cohorts = {AUDITED: self._build_cohorts(members)}
        models: dict[str, Model] = {TARGET: target, "reference": self._build_null_model(1)}
        return Evidence(models=models, corpora=self.corpora, cohorts=cohorts, trainable=True)

    def train(self, cohorts: Cohorts, corpus: Corpus) -> Mapping[str, Model]:
        """Models that have memorised their cohorts' records."""
        return {
            name: Memoriser(
                tuple(iter(cohorts.select_corpus(corpus, name))), otherwise=self._build_null_model(2 + i), name=name
            )
            for i, name in enumerate(cohorts.models)
        }

    def score(self, model: Model, corpus: Corpus) -> WorldAnswers:
        """Scores with a model directly."""
        return WorldAnswers(model, self.block)

    @property
    def _vocabulary(self) -> int:
        return 10 if self.kind == "classifier" else 1000

    def _build_null_model(self, seed: int) -> Null:
        return Null(seed=seed, kind=self.kind, vocabulary=self._vocabulary)

    def _build_corpus(self, records: list[Record]) -> Corpus:
        return Corpus.of(records[::-1] if self.backwards else records)

    def _build_shadow_cohorts(self) -> Cohorts:
        """Shadows that were each trained on a random half of all audited people."""
        owners = sorted({record.owner for record in self.corpora[AUDITED]})
        halves = {
            f"shadow-{i}": [
                owners[j] for j in stream(self.seed, labels.ROLE_SHADOW, i).permutation(len(owners))[: len(owners) // 2]
            ]
            for i in range(SHADOWS)
        }
        return self._build_cohorts(halves)

    def _build_cohorts(self, members: Mapping[str, list[str]]) -> Cohorts:
        owners = {record.owner for record in self.corpora[AUDITED]}
        return Cohorts.of(members, units=owners, unit="user", corpus=self.corpora[AUDITED].digest, seed=self.seed)

    def _build_records(self, group: str, people: int) -> list[Record]:
        """What the people of one group wrote."""
        return [
            self._make_record(f"{group}-{person}", number) for person in range(people) for number in range(RECORDS_EACH)
        ]

    def _make_record(self, user: str, number: int) -> Record:
        """One record; those that hold an array are made anew, because an array can be changed."""
        build = _build_world_record if self.kind == "classifier" else _build_cached_record
        return build(self.kind, self.seed, user, number)


def _build_world_record(kind: Kind, seed: int, user: str, number: int) -> Record:
    """One record of the world: some frequent words and some rare ones, different for everybody."""
    rng = stream(seed, user, number)
    words = [f"word{int(WORDS ** rng.random())}" for _ in range(int(rng.integers(8, 16)))]
    text, name = " ".join(words).capitalize(), f"{user}-{number}"
    if kind == "seq2seq":
        return Record(id=name, user=user, source=" ".join(words[::-1]), target=text)
    if kind == "classifier":
        return Record(id=name, user=user, array=rng.random((4, 4), dtype=np.float32), label=int(rng.integers(10)))
    return Record(id=name, user=user, text=text)


_build_cached_record = lru_cache(maxsize=1 << 12)(_build_world_record)
"""The same, made once: contract checks build the same world again and again."""
