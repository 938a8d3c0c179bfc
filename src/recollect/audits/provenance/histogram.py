"""The paper's method: histograms of ranks, classified by a linear support vector machine.

Song and Shmatikov 2019, Algorithm 1. What the paper leaves open: 100 bins; a word's rank less one is binned, so that
the last rank is not dropped; where only the top k words are visible, min(100, k) bins over those and a count of
the words that are not; unknown words are left out; shadow users have as many queries as the person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from recollect.audits.provenance.word_alignment import Codes, Floats, WordRanks
from recollect.errors import NotEnoughData

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

Features = Literal["scaled", "counts"]
"""`scaled`: divided by their Euclidean norm, then each feature standardised, as in the authors' code. `counts`: as
the paper prints them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Histogram:
    """An audit model for each number of texts, trained on the shadows' users."""

    words: WordRanks
    """Of the audited and the calibration users, in the target alone."""
    shadows: Sequence[tuple[WordRanks, NDArray[np.bool_]]]
    """Of the shadows' users, in each shadow alone; and on which of these users it was trained [users]."""
    vocabulary: int
    """How many ranks there are."""
    k: int | None
    """The target's top k that is visible; None for all."""
    bins: int = 100
    features: Features = "scaled"
    seed: int = 0
    _models: dict[int, Any] = field(default_factory=dict, repr=False)

    def score_users(self, most: int, within: NDArray[np.bool_] | None = None) -> Floats:
        """The distance of each user's histogram to the hyperplane; above 0 they are classified as a member [users].

        Args:
            most: How many texts of each.
            within: Which words count, where it is not all words of these texts [words].
        """
        if most not in self._models:
            self._models[most] = self._fit(most)
        counted = self._count_ranks(self.words, self.words.text < most if within is None else within)
        return np.asarray(self._models[most].decision_function(counted), dtype=np.float64)

    def _fit(self, most: int) -> Pipeline:
        """The audit model for users with so many texts."""
        # here, because the other method should not wait for it
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import Normalizer, StandardScaler
        from sklearn.svm import LinearSVC

        seen = np.concatenate([saw for _, saw in self.shadows])
        features = np.concatenate([self._count_ranks(words, words.text < most) for words, _ in self.shadows])
        written = features.sum(axis=1) > 0
        if len(set(seen[written].tolist())) < 2:
            raise NotEnoughData(
                "The histogram's classifier learns from users on whom a shadow was trained and from others; here all "
                f"{int(written.sum())} are of one kind.",
                do="Give at least two shadows that were trained on different halves, or a recipe.",
                code="one_sided_shadows",
            )
        scaling = [Normalizer(), StandardScaler()] if self.features == "scaled" else []
        classifier = LinearSVC(random_state=self.seed % 2**32, max_iter=10_000, dual="auto")
        return make_pipeline(*scaling, classifier).fit(features[written], seen[written])

    def _count_ranks(self, words: WordRanks, within: NDArray[np.bool_]) -> Floats:
        """The histogram of each user's ranks, and how many were not shown [users, bins + 1]."""
        bins = self.bins if self.k is None else min(self.bins, self.k)
        # words have one token each where a model is alone, so their rank is the token's
        rank = np.exp(words.limit_ranks(0, self.k)[within]).round()
        found = find_histogram_bins(rank, bins, self.vocabulary if self.k is None else self.k)
        cells = words.user[within] * (bins + 1) + found
        return np.bincount(cells, minlength=len(words.users) * (bins + 1)).reshape(-1, bins + 1).astype(np.float64)


def find_histogram_bins(rank: Floats, bins: int, largest: int) -> Codes:
    """The bin of the histogram of each rank, from 0; one that is not shown (infinite) comes after the last.

    >>> find_histogram_bins(np.array([1.0, 50, 51, 5000, 6000, np.inf]), 100, 5000).tolist()
    [0, 0, 1, 99, 99, 100]
    """
    shown = np.isfinite(rank)
    shifted = np.where(shown, rank, 1) - 1
    inside = np.minimum(np.floor(shifted * bins / largest), bins - 1).astype(np.int64)
    return np.where(shown, inside, bins)
