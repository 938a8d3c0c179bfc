"""Words by how frequent they are, as training users and others write them, in a model's eyes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from laboratory import Laboratory, People
from numpy.typing import NDArray

from recollect.corpora.corpus import Corpus
from recollect.models.answer_store.scoring import score_corpus

Numbers = NDArray[np.float64]
BANDS = (1, 100, 500, 1000, 2000, 3000, 5000)
"""Limits of the groups of words, by their places in the list of the training texts' most frequent words."""


def asked_words(lab: Laboratory, target: Path, corpus: Corpus) -> Iterator[tuple[str, int, float]]:
    """Each word of the corpus that the target knows, with its rank and log-probability."""
    store = score_corpus(str(target), corpus, lab.work, backend=lab.cluster)
    for records, answers in store.iter_blocks(corpus):
        for record in records:
            rows = answers.get_rows(record.digest)
            text = record.scored_text.lower()
            for begin, end, known, rank, logprob in zip(
                *(getattr(answers, name)[rows].tolist() for name in ("start", "end", "known", "rank", "logprob")),
                strict=True,
            ):
                if known:
                    yield text[begin:end].strip(), rank, logprob


def measured(lab: Laboratory, target: Path, people: People) -> dict[str, Numbers]:
    """For both kinds of users: the place in the frequency list, the rank and the log-probability of every word."""
    own = list(asked_words(lab, target, people.members))
    others = list(asked_words(lab, target, people.others))
    counts = Counter(word for word, _, _ in own)
    place = {word: i + 1 for i, (word, _) in enumerate(counts.most_common())}
    return {
        name: np.array([(place[word], rank, logprob) for word, rank, logprob in words if word in place])
        for name, words in (("own", own), ("others", others))
    }


def bands(table: dict[str, Numbers]) -> dict[str, dict[str, Any]]:
    """The median rank of the words of each band of frequency, of what was measured."""
    found: dict[str, dict[str, Any]] = {}
    for low, high in pairwise(BANDS):
        row: dict[str, Any] = {}
        for name, words in table.items():
            inside = words[(words[:, 0] >= low) & (words[:, 0] < high)]
            middle = float(np.median(inside[:, 1])) if len(inside) else None  # a smaller vocabulary ends before
            row |= {f"{name}_words": len(inside), f"{name}_rank": middle}
        found[f"{low} to {high - 1}"] = row
    return found
