"""The calibrated method: is a word easier for the target than for models that never saw its author?

How hard a word is, the shadows say that did not see its user. What the rank under the target then tells is learnt from
the shadows too, because there it is known who trained which: how much likelier is this rank, for a word as hard as
this, if the user was in training than if not? The logarithms of these ratios are added up over the user's words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.audits.provenance.words import Codes, Floats, Words
from recollect.errors import NotEnoughData

Flags = NDArray[np.bool_]
HARDNESS_BINS, RANK_BINS = 10, 20
PRIOR = 20.0
"""How many words' weight the ratio of all words together has in the ratio of words of one hardness."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The evidence of each word that the target was asked about, summed up for users."""

    words: Words
    """Of the audited and the calibration users; the target is the first model, the shadows are the others."""
    evidence: Floats
    """The log-likelihood ratio of each word; higher is more evidence of training [words]."""

    @classmethod
    def of(cls, words: Words, trained: Words, saw: Flags, *, k: int | None) -> Calibrated:
        """Learn from the shadows, and judge the words.

        Args:
            words: Of the audited and the calibration users, in the target and in every shadow.
            trained: Of the shadows' users, in every shadow.
            saw: Which shadow saw which of the shadows' users [shadows, users].
            k: How many of its likeliest symbols the target shows; None for all.
        """
        ratios = Ratios.learnt(words, trained, saw[:, trained.user], k=k)
        shadows = range(1, len(words.log_rank))
        hardness = np.mean([quantiles(words.log_rank[j], words.log_rank[j]) for j in shadows], axis=0)
        shown = words.limited(0, k)
        return cls(words, ratios.of(quantiles(hardness, hardness), quantiles(shown, shown), np.isfinite(shown)))

    def scores(self, most: int) -> Floats:
        """The evidence of each user's first so many texts, in units of its own chance [users].

        Dividing by the root of the number of words gives those who write much and those who write little the same
        scatter, so that both can be compared with the same calibration users.
        """
        within = self.words.text < most
        centred = self.evidence - self.evidence.mean()
        sums = np.bincount(self.words.user[within], weights=centred[within], minlength=len(self.words.users))
        return np.asarray(sums / np.sqrt(np.maximum(1, self.words.counts(most))))


@dataclass(frozen=True, eq=False)
class Ratios:
    """How much likelier a rank is for words that a model was trained on, by how hard the word is."""

    table: Floats
    """Natural logarithms [hardness, rank]; the last column is that of words that are not shown."""

    def of(self, hardness: Floats, rank: Floats, shown: Flags) -> Floats:
        """The logarithm of the ratio for each word; hardness and rank are quantiles."""
        return np.asarray(self.table[_binned(hardness, HARDNESS_BINS), _ranked(rank, shown)])

    @classmethod
    def learnt(cls, words: Words, trained: Words, saw: Flags, *, k: int | None) -> Ratios:
        """Every shadow plays the target once.

        Args:
            words: Of people whom no shadow saw.
            trained: Of the shadows' users.
            saw: Which shadow saw the user of which of these words [shadows, words].
            k: How many of its likeliest symbols the target shows.
        """
        counts = np.zeros((2, HARDNESS_BINS, RANK_BINS + 1))
        ranks = np.stack([_ranks(words, trained, saw[j], j, k=None) for j in range(len(saw))])
        for target in range(len(saw)):
            others = _others(saw, target)
            judged = others.any(axis=0)
            if not judged.any():
                continue
            hardness = (ranks * others).sum(axis=0)[judged] / others.sum(axis=0)[judged]
            seen, shown = saw[target, judged], np.isfinite(trained.limited(target, k))[judged]
            # hardness is compared with that of words which the shadow did not see, as the target's calibration is
            hardness = quantiles(hardness, hardness[~seen])
            rank = _ranks(words, trained, saw[target], target, k=k)[judged]
            cell = _binned(hardness, HARDNESS_BINS) * (RANK_BINS + 1) + _ranked(rank, shown)
            for member in (0, 1):
                found = np.bincount(cell[seen == bool(member)], minlength=counts[0].size)
                counts[member] += found.reshape(counts[0].shape)
        if not counts.sum(axis=(1, 2)).all():
            raise NotEnoughData(
                "The shadows teach nothing: no user was seen by one of them and not by two others.",
                do="Give at least four shadow models, each trained on a random half of the reference users.",
            )
        return cls(_log_ratio(counts))


def _log_ratio(counts: Floats) -> Floats:
    """The logarithm of the ratio of shares; cells with few words lean on those of all hardnesses."""
    overall = counts.sum(axis=1) + 1
    overall /= overall.sum(axis=1, keepdims=True)
    shares = (counts + PRIOR * overall[:, None]) / (counts.sum(axis=2, keepdims=True) + PRIOR)
    return np.asarray(np.log(shares[1] / shares[0]))


def _others(saw: Flags, target: int) -> Flags:
    """Which shadows say how hard a word is when one of them plays the target: such as did not see its user.

    Where the target saw the user, one more is left out, so that hardness rests on equally many shadows whether or not
    the user was in training; otherwise it would itself betray who was.
    """
    others = ~saw
    others[target] = False
    rolled = np.roll(others, -target - 1, axis=0)
    first = (rolled.argmax(axis=0) + target + 1) % len(saw)
    columns = np.flatnonzero(saw[target] & others.any(axis=0))
    others[first[columns], columns] = False
    return others


def _ranks(words: Words, trained: Words, seen: Flags, shadow: int, *, k: int | None) -> Floats:
    """The ranks of the shadows' users' words in one shadow, as quantiles among the words it did not see."""
    own = trained.limited(shadow, k)
    return quantiles(own, np.concatenate([own[~seen], words.limited(shadow + 1, k)]))


def quantiles(values: Floats, among: Floats) -> Floats:
    """Which share of the others is smaller, ties counting half: so models with different vocabularies compare.

    >>> quantiles(np.array([1.0, 2.0, np.inf]), np.array([1.0, 2.0, 2.0, np.inf])).tolist()
    [0.125, 0.5, 0.875]
    """
    ordered = np.sort(among)
    below = np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")
    return np.asarray(below / (2 * max(1, len(among))))


def _binned(quantile: Floats, bins: int) -> Codes:
    """The bin of each quantile, from 0."""
    return np.minimum((quantile * bins).astype(np.int64), bins - 1)


def _ranked(quantile: Floats, shown: Flags) -> Codes:
    """The bin of each rank; words that are not shown have one of their own."""
    return np.where(shown, _binned(quantile, RANK_BINS), RANK_BINS)
