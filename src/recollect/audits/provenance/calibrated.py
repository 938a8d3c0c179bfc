"""The calibrated method: is a word easier for the target than for models that never saw its author?

How hard a word is, the shadows say, none of which saw the people who are compared. A word is evidence by as much as the
target places it better than the shadows do, beyond what it does for all words as hard and as frequent as this; hard
words count more, because they are what a model has to remember. Frequent words matter most where little is shown: which
of them a model says first is its habit, and no memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from recollect.audits.provenance.words import Codes, Floats, Words

WORDS_EACH = 50
"""So many words are compared with each other, about: those as frequent and as hard."""
ASPECT = 4
"""So many times as fine words are divided by frequency as by hardness."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The evidence of each word that the target was asked about, summed up for users."""

    words: Words
    """Of the audited and the calibration users; the target is the first model, the shadows are the others."""
    k: int | None
    """How many of its likeliest symbols the target shows; None for all."""

    def scores(self, most: int) -> Floats:
        """The evidence of each user's first so many texts, in units of its own chance [users].

        Dividing by the root of the number of words gives those who write much and those who write little the same
        scatter, so that both can be compared with the same calibration users.
        """
        within = self.words.text < most
        sums = np.bincount(self.words.user[within], weights=self.evidence[within], minlength=len(self.words.users))
        return np.asarray(sums / np.sqrt(np.maximum(1, self.words.counts(most))))

    @cached_property
    def evidence(self) -> Floats:
        """What each word tells; higher is more evidence of training [words].

        Everybody's words are treated alike, the person's and the calibration users': so whoever was not in training
        is as likely as any of them to score highest, whatever the shadows are worth.
        """
        target, *shadows = range(len(self.words.log_rank))
        hardness = np.mean([_quantiles(self.words.limited(j, None)) for j in shadows], axis=0)
        # what the shadows would show of their ranks, if they showed as little as the target
        expected = np.mean([_quantiles(self.words.limited(j, self.k)) for j in shadows], axis=0)
        better = expected - _quantiles(self.words.limited(target, self.k))
        group = alike(self.words.count.astype(np.float64), hardness)
        usual = np.bincount(group, weights=better) / np.maximum(1, np.bincount(group))
        return np.asarray((better - usual[group]) * hardness)


def alike(frequency: Floats, hardness: Floats) -> Codes:
    """The number of each word's group: words as frequent, and among those as hard; equal words share one [words]."""
    groups = max(1.0, len(frequency) / WORDS_EACH)
    rows = max(1, int(np.sqrt(ASPECT * groups)))
    columns = max(1, int(groups / rows))
    row = _grouped(frequency, rows)
    found = np.empty(len(row), dtype=np.int64)
    ends = np.cumsum(np.bincount(row, minlength=rows))
    for place, inside in enumerate(np.split(np.argsort(row, kind="stable"), ends[:-1])):
        found[inside] = place * columns + _grouped(hardness[inside], columns)
    return found


def _grouped(values: Floats, groups: int) -> Codes:
    """Into which of so many groups of about equal size each value falls."""
    return np.minimum((_quantiles(values) * groups).astype(np.int64), groups - 1)


def quantiles(values: Floats, among: Floats) -> Floats:
    """Which share of the others is smaller, ties counting half: so models with different vocabularies compare.

    >>> quantiles(np.array([1.0, 2.0, np.inf]), np.array([1.0, 2.0, 2.0, np.inf])).tolist()
    [0.125, 0.5, 0.875]
    """
    ordered = np.sort(among)
    below = np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")
    return np.asarray(below / (2 * max(1, len(among))))


def _quantiles(values: Floats) -> Floats:
    """The quantile of each among all."""
    return quantiles(values, values)
