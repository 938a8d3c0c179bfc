"""Worlds of the exposure audit: secrets that were never planted, said to be planted, beside others as controls."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from people import People
from stored import StoredModel

from recollect.audits.audit import Audit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.manifest import Canaries, Canary
from recollect.corpora.record import Record
from recollect.results.result import Result
from recollect.signals.evidence import TARGET, Evidence
from recollect.streams import stream

ALTERNATIVES = 40
"""Words that may stand in each of two slots: 1,600 secrets, few enough to be scored once and for all."""


@lru_cache(maxsize=4)
def build_format(people: People) -> str:
    """A format of two slots, filled with words that all models of a set know."""
    counts = Counter(word for records in people.records.values() for r in records for word in _list_words(r))
    words = [word for word, _ in counts.most_common(ALTERNATIVES)]
    slot = f"{{choice:{'|'.join(sorted(words))}}}"
    return f"{words[0]} {slot} {slot}"


def build_secrets(people: People) -> list[Record]:
    """Every secret there can be."""
    return [Record(id=text, text=text) for text in parse_format(build_format(people)).iter_all()]


def audit_secrets(
    audit: Audit, model: StoredModel, people: People, *, planted: int, controls: int, seed: int
) -> Result:
    """The result of an audit of secrets that are said to be planted, and are not.

    Args:
        audit: The exposure audit.
        model: Has scored all secrets.
        people: Whose words the secrets are made of.
        planted: How many secrets are said to be planted.
        controls: How many are said to be controls.
        seed: Of the world.
    """
    pattern = build_format(people)
    parsed, rng = parse_format(pattern), stream(seed, "nulls", "secrets")
    canaries = [
        Canary(id=f"canary-{i}", format=pattern, text=parsed.draw(rng), planted=int(i < planted), records=())
        for i in range(planted + controls)
    ]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "canaries.json"
        Canaries(corpus="", seed=seed, canaries=tuple(canaries)).save(file)
        evidence = Evidence(models={TARGET: model}, files={"canaries": file}, seed=seed)
        complete = collect_evidence(audit, evidence, score=lambda model, corpus: model, train=lambda *_: {})  # type: ignore[arg-type, return-value]
        return audit.run(complete, stream(seed, audit.name))


@lru_cache(maxsize=32)
def compute_mean_exposure(model: StoredModel, people: People) -> float:
    """The mean exposure over all secrets there can be, in bits: what a random one has on average."""
    answers = model.answers
    assert answers.logprob is not None
    secrets = [record.digest for record in build_secrets(people)]
    costs = np.array([-float(answers.logprob[answers.get_rows(secret)][-2:].sum()) for secret in secrets])
    ranks = np.searchsorted(np.sort(costs), costs, side="right")
    return float(np.mean(np.log2(len(costs)) - np.log2(ranks)))


def _list_words(record: Record) -> list[str]:
    """The plain words of a record."""
    return [word for word in (record.text or "").lower().split() if word.isascii() and word.isalpha()]
