"""The shift guard: can the two sides be told apart by their words and how these are written, without any model?

Then an AUC may measure that and not membership: the known flaw of published benchmarks (Duan et al. 2024, "Do
Membership Inference Attacks Work on Large Language Models?").
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
from recollect.stats.support import require

FOLDS = 5
MOST_RECORDS = 2000
"""Of each side: enough to see any difference that matters."""
SHIFTED = 0.01
"""Below this p-value the two sides are said to differ."""
_FEATURES = 2**16
_WORD = r"\S+"


def told_apart(one: Sequence[Record], other: Sequence[Record], *, confidence: float) -> Comparison:
    """How well a bag-of-words classifier tells unseen users of both sides apart; 0.5 is not at all.

    The bag also holds the shapes of words and of neighbours, so that a name before every record of one side is seen,
    even if no two people share it. Logistic regression in five folds by user, so that nobody is judged by a classifier
    that has seen any record of theirs. Arrays are judged by their values.
    """
    from sklearn.linear_model import LogisticRegression

    records = [*one, *other]
    side = np.arange(len(records)) < len(one)
    fold = np.array([int(digest(labels.DIGEST_SHIFT, record.owner), 16) % FOLDS for record in records], dtype=np.int64)
    features = _features(records)
    judged = np.zeros(len(records))
    for held in range(FOLDS):
        train, test = fold != held, fold == held
        fewest = int(min(side[train].sum(), (~side[train]).sum()))
        require(fewest, 2, of="records on each side", purpose="The guard", code="too_few_records")
        if test.any():
            model = LogisticRegression(solver="liblinear", class_weight="balanced", random_state=0)
            judged[test] = model.fit(features[train], side[train]).decision_function(features[test])
    scores = [
        Scores.of(part, dict(zip((r.id for r in part), judged[mine], strict=True)))
        for part, mine in ((one, side), (other, ~side))
    ]
    users = [part.by_user().values for part in scores]
    p = mann_whitney(*users).p
    effect = auc(*scores, confidence=confidence)
    return Comparison(p=p, alternative="greater", effect=effect, method="bag of words, Mann–Whitney of users")


def sampled(corpus: Corpus, wanted: frozenset[str] | None = None) -> list[Record]:
    """Some records of a corpus, the same whatever their order: the smallest by digest of their id."""
    kept = [record for record in corpus if wanted is None or record.id in wanted]
    return sorted(kept, key=lambda record: digest(labels.DIGEST_SHIFT, record.id))[:MOST_RECORDS]


def _features(records: Sequence[Record]) -> Any:
    """The words and shapes of texts, hashed; the values of arrays."""
    if records and records[0].array is not None:
        sizes = {0 if record.array is None else record.array.size for record in records}
        width = min(sizes)
        return np.stack([_values(record)[:width] for record in records])
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import HashingVectorizer

    texts = [f"{record.source or ''} {record.predicted}" for record in records]
    words = HashingVectorizer(n_features=_FEATURES, token_pattern=_WORD, alternate_sign=False)
    shapes = HashingVectorizer(n_features=_FEATURES, analyzer=_shapes, alternate_sign=False)
    return hstack([words.transform(texts), shapes.transform(texts)], format="csr")


def _shapes(text: str) -> list[str]:
    """The shapes of a text's words, and of every two neighbours; its beginning counts as a word."""
    found = ["^", *map(_shape, text.split())]
    return found + [f"{one} {other}" for one, other in itertools.pairwise(found)]


@lru_cache(maxsize=2**16)
def _shape(word: str) -> str:
    """How a word is written.

    >>> _shape("McCoy,"), _shape("1999"), _shape("USA")
    ('XxXx,', '9', 'X')
    """
    kinds = ("X" if c.isupper() else "x" if c.isalpha() else "9" if c.isdigit() else c for c in word)
    return "".join(kind for kind, _ in itertools.groupby(kinds))


def _values(record: Record) -> Floats:
    """The values of an array as one row."""
    return np.ravel(np.asarray(record.array, dtype=np.float64))
