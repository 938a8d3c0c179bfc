"""The calibrated method: is a word easier for the target than for models that were not trained on its author?

How hard a word is, the shadows say, none of which was trained on the people who are compared. A word is evidence by as
much as the target ranks it better than the shadows do, beyond what it does for all words as hard and as frequent as
this; hard words count more, because they are what a model has to memorise. Frequent words matter most where little is
shown: which of them a model predicts first is its habit, and no memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recollect.audits.provenance.word_alignment import Codes, Floats, WordRanks
from recollect.stats.midranks import midranks

Flags = NDArray[np.bool_]

WORDS_EACH = 50
"""So many words are compared with each other, about: those as frequent and as hard."""
ASPECT = 4
"""So many times as fine words are divided by frequency as by hardness."""


@dataclass(frozen=True, eq=False)
class CalibratedScorer:
    """The evidence of each word that the target scored, summed up for users."""

    words: WordRanks
    """Of the audited and the calibration users; the target is the first model, the shadows are the others."""
    k: int | None
    """The target's top k that is visible; None for all."""

    def score_users(self, most: int, within: Flags | None = None) -> Floats:
        """The evidence of each user's first so many texts, in units of its standard error [users].

        Dividing by the root of the number of words gives those who write much and those who write little the same
        scatter, so that both can be compared with the same calibration users.

        Args:
            most: How many texts of each.
            within: Which words count, where it is not all words of these texts [words].
        """
        within = self.words.text < most if within is None else within
        user, users = self.words.user[within], len(self.words.users)
        sums = np.bincount(user, weights=self.evidence[within], minlength=users)
        return np.asarray(sums / np.sqrt(np.maximum(1, np.bincount(user, minlength=users))))

    @cached_property
    def evidence(self) -> Floats:
        """The evidence of each word; higher is more evidence of training [words].

        The words of the person and of the calibration users are treated in the same way: so a non-member is as likely
        as any of them to score highest, however good or bad the shadows are.
        """
        target, *shadows = range(len(self.words.log_rank))
        hardness = np.mean([compute_quantiles(self.words.limit_ranks(j, None)) for j in shadows], axis=0)
        # what the shadows would show of their ranks, if they showed as little as the target
        limited = (compute_quantiles(self.words.limit_ranks(j, self.k)) for j in shadows)
        expected = hardness if self.k is None else np.mean(list(limited), axis=0)
        better = expected - compute_quantiles(self.words.limit_ranks(target, self.k))
        group = group_similar_words(self.words.frequency.astype(np.float64), hardness)
        usual = np.bincount(group, weights=better) / np.maximum(1, np.bincount(group))
        return np.asarray((better - usual[group]) * hardness)


def group_similar_words(frequency: Floats, hardness: Floats) -> Codes:
    """The group of each word in the calibrated method: words as frequent, and as hard [words]."""
    groups = max(1.0, len(frequency) / WORDS_EACH)
    rows = max(1, int(np.sqrt(ASPECT * groups)))
    columns = max(1, int(groups / rows))
    row = _divide_evenly(frequency, rows)
    found = np.empty(len(row), dtype=np.int64)
    ends = np.cumsum(np.bincount(row, minlength=rows))
    for number, inside in enumerate(np.split(np.argsort(row, kind="stable"), ends[:-1])):
        found[inside] = number * columns + _divide_evenly(hardness[inside], columns)
    return found


def _divide_evenly(values: Floats, groups: int) -> Codes:
    """For the calibrated method: into which of so many groups of similar words each value falls."""
    return np.minimum((compute_quantiles(values) * groups).astype(np.int64), groups - 1)


def compute_quantiles(values: Floats) -> Floats:
    """Which share of a model's ranks is smaller, ties half; calibrates models with different vocabularies.

    >>> compute_quantiles(np.array([1.0, 2.0, 2.0, np.inf])).tolist()
    [0.125, 0.5, 0.5, 0.875]
    """
    return (2 * midranks(values) - 1) / (2 * max(1, len(values)))
