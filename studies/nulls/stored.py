"""Answers that were stored once, read by worlds: no model is asked again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from recollect.corpora.record import Record
from recollect.digests import digest
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.model import Kind, Model, Question

BLOCK = 1024
"""Records scored at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredModel:
    """A model of which only its answers are here: a `Model` to the audits, and the source of its answers."""

    name: str
    digest: str
    answers: Answers = field(repr=False)
    kind: Kind = "causal"
    question: Question = field(default_factory=Question)
    access: Access = Access.PROBABILITIES
    folder: Path | None = None
    """Where the model itself lies: it is asked about records that a signal makes of others."""

    def answer(self, records: Sequence[Record]) -> Answers:
        """What it showed about these records, each content once."""
        return self.get_answers(records)

    def get_answers(self, records: Iterable[Record]) -> Answers:
        """What it showed about these records, each content once."""
        distinct = {record.digest: record for record in records}
        unknown = [record for name, record in distinct.items() if name not in self.answers.index_of]
        if not unknown or self.folder is None:
            return self.answers.select(tuple(distinct))
        known = self.answers.select([name for name in distinct if name in self.answers.index_of])
        return Answers.concatenate([known, *_score_live(self.folder, unknown)]).select(tuple(distinct))

    def iter_blocks(self, records: Iterable[Record]) -> Iterator[tuple[list[Record], Answers]]:
        """All records as one block."""
        block = list(records)
        yield block, self.get_answers(block)


def store_answers(model: Model, records: Sequence[Record], file: Path) -> None:
    """Have a model score records, and keep what it shows in one file."""
    distinct = list({record.digest: record for record in records}.values())
    parts = [model.answer(distinct[i : i + BLOCK]) for i in range(0, len(distinct), BLOCK)]
    answers = Answers.concatenate(parts)
    names = [each.name for each in fields(Answers) if each.name != "records"]
    columns = {name: getattr(answers, name) for name in names if getattr(answers, name) is not None}
    part = file.with_suffix(".part.npz")
    np.savez(
        part, records=np.array(answers.records), digest=np.array(model.digest), kind=np.array(model.kind), **columns
    )
    part.replace(file)


def _score_live(folder: Path, records: Sequence[Record]) -> list[Answers]:
    """What a model shows about records that were not stored; the latest ones are remembered."""
    missing = [record for record in records if (folder, record.digest) not in _SCORED]
    if len(_SCORED) + len(missing) > MAX_LIVE:
        _SCORED.clear()
        missing = list(records)
    if missing:
        answers = _load_model(folder).answer(missing)
        _SCORED.update({(folder, name): answers.select([name]) for name in answers.records})
    return [_SCORED[folder, record.digest] for record in records]


_SCORED: dict[tuple[Path, str], Answers] = {}
MAX_LIVE = 20_000
"""Records whose live scores are remembered."""


@lru_cache(maxsize=16)
def _load_model(folder: Path) -> Model:
    """The model itself, once."""
    from recollect.models.loading.loader import load_model

    return load_model(str(folder))


@lru_cache(maxsize=128)
def load_stored(file: Path) -> StoredModel:
    """The model whose answers are in this file."""
    with np.load(file) as held:
        columns = {each.name: held.get(each.name) for each in fields(Answers)}
        columns["records"] = tuple(held["records"].tolist())
        found, kind = str(held["digest"]), str(held["kind"])
    return StoredModel(name=file.stem, digest=found, answers=Answers(**columns), kind=kind)  # type: ignore[arg-type]


def change_logprobs(model: StoredModel, values: np.ndarray, note: str) -> StoredModel:
    """The same model with other log-probabilities [rows]."""
    changed = replace(model.answers, logprob=values.astype(np.float32))
    return replace(model, name=f"{model.name}-{note}", digest=digest(model.digest, note), answers=changed)
