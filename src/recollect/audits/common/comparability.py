"""Comparability: can a classifier without access to the model separate the two sides that are compared?

If it can, an AUC may measure the difference between them and not membership: the known flaw of published benchmarks
(Duan et al. 2024, "Do Membership Inference Attacks Work on Large Language Models?").
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from recollect import labels
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.digests import digest
from recollect.signals.scores import Floats, Scores
from recollect.stats.auc import auc
from recollect.stats.comparisons import Comparison, mann_whitney
from recollect.stats.requirements import require_count

FOLDS = 5
MAX_RECORDS = 2000
"""Records per side: enough to detect any difference that matters."""
SHIFT_ALPHA = 0.01
"""At or below this p-value two sides count as different."""
_FEATURES = 2**16
_WORD = r"\S+"


def measure_separability(one: Sequence[Record], other: Sequence[Record], *, confidence: float) -> Comparison:
    """How well a bag-of-words classifier separates held-out users of both sides; an AUC of 0.5 is not at all.

    The bag also contains the shapes of words and of neighbours, so that a name before every record of one side is
    detected, even if no two people share it. Logistic regression, cross-validated in five folds by user, so that
    nobody is scored by a classifier that was fitted to any of their records. Arrays are classified by their values.

    Args:
        one: Records of one side.
        other: Records of the other side.
        confidence: The confidence level of the AUC's interval.

    Raises:
        NotEnoughData: A side has too few records.
    """
    from sklearn.linear_model import LogisticRegression

    purpose, few = "The comparability check", "too_few_records"
    require_count(min(len(one), len(other)), 2, of="records on each side", purpose=purpose, code=few)
    records = [*one, *other]
    side = np.arange(len(records)) < len(one)
    fold = np.array([int(digest(labels.DIGEST_SHIFT, record.owner), 16) % FOLDS for record in records], dtype=np.int64)
    features = _extract_features(records)
    values = np.zeros(len(records))
    for held_out in range(FOLDS):
        train, test = fold != held_out, fold == held_out
        fewest = int(min(side[train].sum(), (~side[train]).sum()))
        require_count(fewest, 2, of="records on each side", purpose=purpose, code=few)
        if test.any():
            model = LogisticRegression(solver="liblinear", class_weight="balanced", random_state=0)
            values[test] = model.fit(features[train], side[train]).decision_function(features[test])
    scores = [
        Scores.of(group, dict(zip((r.id for r in group), values[mine], strict=True)))
        for group, mine in ((one, side), (other, ~side))
    ]
    p = mann_whitney(*(each.average_by_user().values for each in scores)).p
    effect = auc(*scores, confidence=confidence)
    return Comparison(p=p, alternative="greater", effect=effect, method="bag of words, Mann–Whitney of users")


def sample_records(corpus: Corpus, wanted: frozenset[str] | None = None) -> list[Record]:
    """Some records of a corpus, the same whatever their order: the smallest by digest of their id.

    Args:
        corpus: The corpus.
        wanted: The ids to choose from; None for all.
    """
    kept = [record for record in corpus if wanted is None or record.id in wanted]
    return sorted(kept, key=lambda record: digest(labels.DIGEST_SHIFT, record.id))[:MAX_RECORDS]


def _extract_features(records: Sequence[Record]) -> Any:
    """The words and shapes of texts, hashed; the values of arrays."""
    if records and records[0].array is not None:
        width = min(0 if record.array is None else record.array.size for record in records)
        return np.stack([_flatten(record)[:width] for record in records])
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import HashingVectorizer

    texts = [f"{record.source or ''} {record.scored_text}" for record in records]
    words = HashingVectorizer(n_features=_FEATURES, token_pattern=_WORD, alternate_sign=False)
    shapes = HashingVectorizer(n_features=_FEATURES, analyzer=_list_shapes, alternate_sign=False)
    return hstack([words.transform(texts), shapes.transform(texts)], format="csr")


def _list_shapes(text: str) -> list[str]:
    """The shapes of a text's words, and of every two neighbours; the start of the text counts as a word."""
    found = ["^", *map(_compute_shape, text.split())]
    return found + [f"{one} {other}" for one, other in itertools.pairwise(found)]


@lru_cache(maxsize=2**16)
def _compute_shape(word: str) -> str:
    """How a word is written.

    >>> _compute_shape("McCoy,"), _compute_shape("1999"), _compute_shape("USA")
    ('XxXx,', '9', 'X')
    """
    kinds = ("X" if c.isupper() else "x" if c.isalpha() else "9" if c.isdigit() else c for c in word)
    return "".join(kind for kind, _ in itertools.groupby(kinds))


def _flatten(record: Record) -> Floats:
    """The values of an array as one row."""
    return np.ravel(np.asarray(record.array, dtype=np.float64))
