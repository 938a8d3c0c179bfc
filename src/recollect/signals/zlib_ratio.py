"""Zlib: log-probability against how far the text can be compressed without any model."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from recollect.models.access import Access
from recollect.models.model import Kind
from recollect.signals.aggregation import ANY_LOGPROB
from recollect.signals.evidence import TARGET, Evidence
from recollect.signals.loss import mean_logprob
from recollect.signals.scores import Scores


@dataclass(frozen=True, kw_only=True)
class Zlib:
    """The mean log-probability of a record's tokens, per byte of the text when zlib has compressed it.

    Carlini et al. 2021, "Extracting Training Data from Large Language Models". Longer records score
    higher whether or not they were trained on: compare records of like length.
    """

    name: ClassVar[str] = "zlib"
    paper: ClassVar[str] = "Carlini et al. 2021, Extracting Training Data from Large Language Models"
    kinds: ClassVar[tuple[Kind, ...]] = ("causal", "masked", "seq2seq")
    needs: ClassVar[Mapping[str, Access]] = {TARGET: ANY_LOGPROB}

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """Log-probability per compressed byte."""
        blocks = []
        for records, (answers,) in evidence.iter_blocks(corpus, [TARGET]):
            means = mean_logprob(answers)
            scored = [record for record in records if record.digest in means]
            values = {r.id: means[r.digest] / measure_compressed_size(r.scored_text) for r in scored}
            blocks.append(Scores.of(scored, values))
        return Scores.concatenate(blocks)


def measure_compressed_size(text: str) -> int:
    """How many bytes zlib needs for a text.

    >>> measure_compressed_size("a" * 1000) < 30
    True
    """
    return len(zlib.compress(text.encode("utf-8", "surrogatepass")))
