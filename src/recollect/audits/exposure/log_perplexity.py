"""Log-perplexities of secrets and of random draws, from the scores of a model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.audits.exposure.secrets import Secret, SecretKind, pick_examples
from recollect.corpora.canaries.automaton import FormatAutomaton
from recollect.corpora.canaries.generation import fill_format
from recollect.corpora.corpus import Corpus
from recollect.corpora.messages import ASSISTANT, say
from recollect.corpora.record import Record
from recollect.models.answers import Answers
from recollect.models.model import Kind
from recollect.signals.evidence import TARGET, Evidence
from recollect.streams import stream

SECRETS, DRAWS = "secrets", "draws"
"""The roles of the corpora that the target scores."""


def build_secrets_corpus(secrets: Sequence[Secret], kind: Kind) -> Corpus:
    """The secrets as records whose log-perplexity such a model can score."""
    records = (_build_secret_record(each.id, each.text, each.source, kind, each.user_turn) for each in secrets)
    return Corpus.of(records, name="the secrets")


def build_draws_corpus(secrets: Sequence[Secret], kind: Kind, *, draws: int, seed: int) -> Corpus:
    """So many random secrets of each format, drawn uniformly, whose log-perplexities are the null; the same by seed."""
    records = []
    for index, example in enumerate(pick_examples(secrets)):
        rng = stream(seed, *labels.STREAM_EXPOSURE_DRAWS, example.format)
        for i in range(draws):
            text = example.parsed.draw(rng)
            source = _fill_source(example, text)
            records.append(_build_secret_record(f"{index}-{i}", text, source, kind, example.user_turn))
    return Corpus.of(records, name="random secrets")


@dataclass(frozen=True, kw_only=True)
class LogPerplexities:
    """Log-perplexities in bits."""

    secrets: dict[str, float]
    """By id; not a number where some token of the secret is not in the model's vocabulary."""
    draws: dict[SecretKind, NDArray[np.float64]]
    """Of random secrets, by kind of secret."""


def compute_log_perplexities(evidence: Evidence, secrets: Sequence[Secret]) -> LogPerplexities:
    """All log-perplexities, from the first token that reaches into a slot to the end of the format.

    One secret may begin with a token of several characters that another spells in two, of which the first is known text
    ("is" " 12" and "is" " " "7"): so all secrets of a kind are counted from where the first of them reaches in.
    """
    examples = pick_examples(secrets)
    kinds = {secret.id: secret.kind for secret in secrets}
    borders = {each.kind: len(each.parsed.known_prefix) for each in examples}
    shared = dict(borders)
    # read twice from the store rather than kept in memory: there may be many formats
    for kind, record, answers, _ in _iterate_scored_secrets(evidence, kinds, examples):
        shared[kind] = min(shared[kind], _find_first_slot_token(answers, record, borders[kind]))
    known, drawn = dict[str, float](), {each.kind: list[float]() for each in examples}
    for kind, record, answers, is_draw in _iterate_scored_secrets(evidence, kinds, examples):
        bits = _compute_log_perplexity(answers, record, shared[kind])
        if is_draw:
            drawn[kind].append(bits)
        else:
            known[record.id] = bits
    return LogPerplexities(secrets=known, draws={kind: np.array(bits) for kind, bits in drawn.items()})


def _iterate_scored_secrets(
    evidence: Evidence, kinds: Mapping[str, SecretKind], examples: Sequence[Secret]
) -> Iterator[tuple[SecretKind, Record, Answers, bool]]:
    """Every secret and draw whose log-perplexity is computed: kind, itself, the answers about it, whether drawn."""
    for records, (answers,) in evidence.iter_blocks(SECRETS, [TARGET]):
        yield from ((kinds[record.id], record, answers, False) for record in records)
    for records, (answers,) in evidence.iter_blocks(DRAWS, [TARGET]):
        yield from ((examples[int(record.id.split("-")[0])].kind, record, answers, True) for record in records)


def _find_first_slot_token(answers: Answers, record: Record, border: int) -> int:
    """Where the first token begins whose log-perplexity counts: the first that ends after the border."""
    rows = _get_rows_of_record(answers, record)
    return int(answers.start[rows][answers.end[rows] > border].min(initial=border))


def _compute_log_perplexity(answers: Answers, record: Record, border: int) -> float:
    """The log-perplexity of a record after the border; for masked models its energy: mean surprise times tokens."""
    assert answers.logprob is not None  # noqa: S101 - the audit needs it
    rows = _get_rows_of_record(answers, record)
    counted = answers.end[rows] > border
    if not counted.any() or not answers.known[rows][counted].all():
        return math.nan
    surprise = -answers.logprob[rows][counted].astype(np.float64) / math.log(2)
    return float(surprise.mean() * len(np.unique(answers.position[rows][counted])))


def _get_rows_of_record(answers: Answers, record: Record) -> slice:
    """The rows of a record in answers, of which a log-perplexity is made."""
    index = answers.index_of[record.digest]
    return slice(answers.offsets[index], answers.offsets[index + 1])


def _build_secret_record(name: str, text: str, source: str | None, kind: Kind, user_turn: str | None) -> Record:
    """A secret as a record of the kind that the model reads, to score its log-perplexity."""
    if user_turn is not None:
        return Record(id=name, messages=(say("user", user_turn), say(ASSISTANT, text)))
    if kind == "seq2seq":
        return Record(id=name, source=source if source is not None else text, target=text)
    return Record(id=name, text=text)


def _fill_source(example: Secret, text: str) -> str | None:
    """The source that goes with a drawn target whose log-perplexity is scored: filled alike, or the same for all."""
    if example.source_format is None:
        return example.source
    return fill_format(example.source_format, FormatAutomaton(example.parsed).parse_values(text) or ())
