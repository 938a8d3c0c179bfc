"""Log-perplexities of secrets and of random draws, from what a model answered about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.audits.exposure.secrets import Secret, formats_of
from recollect.corpora.canaries.drawing import filled
from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.walks import Walk
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.answers import Answers
from recollect.models.model import Kind
from recollect.signals.evidence import TARGET, Evidence
from recollect.streams import stream

SECRETS, DRAWS = "secrets", "draws"
"""The parts of the corpora that the audited model is asked about."""


def secrets_corpus(secrets: Sequence[Secret], kind: Kind) -> Corpus:
    """The secrets as records that such a model can be asked about."""
    return Corpus.of((_record(secret.id, secret.text, secret.source, kind) for secret in secrets), name="the secrets")


def draws_corpus(secrets: Sequence[Secret], kind: Kind, *, draws: int, seed: int) -> Corpus:
    """So many random secrets of each format, drawn uniformly; the same for the same seed."""
    records = []
    for place, example in enumerate(formats_of(secrets)):
        rng = stream(seed, "exposure", "draws", example.format)
        for i in range(draws):
            text = example.parsed.draw(rng)
            source = _source(example, text)
            records.append(_record(f"{place}-{i}", text, source, kind))
    return Corpus.of(records, name="random secrets")


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Log-perplexities in bits."""

    secrets: dict[str, float]
    """By id; not a number where the model does not know some symbol of the secret."""
    draws: dict[tuple[str, str | None], NDArray[np.float64]]
    """By format."""


def costs_of(evidence: Evidence, secrets: Sequence[Secret]) -> Costs:
    """All log-perplexities, from the first symbol that reaches into a slot to the end of the format."""
    borders = {secret.id: len(secret.parsed.before) for secret in secrets}
    known: dict[str, float] = {}
    for records, (answers,) in evidence.each(SECRETS, [TARGET]):
        bits = {record.digest: record.id for record in records}
        edges = np.array([borders[bits[digest]] for digest in answers.records])
        found = dict(zip(answers.records, _bits(answers, edges), strict=True))
        known |= {record.id: found[record.digest] for record in records}
    formats = formats_of(secrets)
    drawn: list[list[float]] = [[] for _ in formats]
    for records, (answers,) in evidence.each(DRAWS, [TARGET]):
        places = {record.digest: int(record.id.split("-")[0]) for record in records}
        edges = np.array([len(formats[places[digest]].parsed.before) for digest in answers.records])
        found = dict(zip(answers.records, _bits(answers, edges), strict=True))
        for record in records:
            drawn[places[record.digest]].append(found[record.digest])
    return Costs(secrets=known, draws={each.kind: np.array(bits) for each, bits in zip(formats, drawn, strict=True)})


def _bits(answers: Answers, borders: NDArray[np.int64]) -> list[float]:
    """The log-perplexity of each record; for masked models its energy: the mean surprise times the symbols."""
    assert answers.logprob is not None  # noqa: S101 - the audit needs it
    owner = np.repeat(np.arange(len(answers)), np.diff(answers.offsets))
    counted = answers.end > borders[owner]
    found = []
    for i in range(len(answers)):
        rows = slice(answers.offsets[i], answers.offsets[i + 1])
        chosen = counted[rows]
        if not chosen.any() or not answers.known[rows][chosen].all():
            found.append(math.nan)
            continue
        surprise = -answers.logprob[rows][chosen].astype(np.float64) / math.log(2)
        found.append(float(surprise.mean() * len(np.unique(answers.position[rows][chosen]))))
    return found


def _record(name: str, text: str, source: str | None, kind: Kind) -> Record:
    """A secret as a record of the kind that the model reads."""
    if kind == "seq2seq":
        return Record(id=name, source=source if source is not None else text, target=text)
    return Record(id=name, text=text)


def _source(example: Secret, text: str) -> str | None:
    """The source that goes with a drawn target: filled alike, or the same for all."""
    if example.source_format is None:
        return example.source
    return filled(example.source_format, Walk(parse_format(example.format)).values(text) or ())
