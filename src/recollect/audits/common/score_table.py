"""The placebo of tests by ranks: all runs at once, from a table of what every control scores at every amount."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from recollect.audits.common.amounts import Bools, Floats, Ints
from recollect.stats.labellings import min_benjamini_hochberg, rank_conformally, sum_ranks


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreTable:
    """The score of every control at every amount at which somebody is compared: computed once, for all runs."""

    scores: Floats
    """NaN where a control cannot be brought to the amount [strata, controls]."""
    owner: Ints
    """The stratum whose group test each control takes part in; −1 if none has it alone."""


def accuse(table: ScoreTable, places: Ints, *, single: bool, alpha: float, rng: np.random.Generator) -> Bools:
    """From a table of scores: whether the controls that play the audited would be found to be members, in each run.

    The smallest corrected p-value of single users, and van Elteren's test of all (normal: its null distribution is that
    of a sum of ranks); twice the smaller of the two.

    Args:
        table: The controls' scores.
        places: The stratum that each control plays in, −1 if it does not play [runs, controls].
        single: Whether users are tested one by one, too.
        alpha: The significance level.
        rng: Where controls without a stratum of their own take part in the group test.
    """
    free, owner = places < 0, _assign(table, places, rng)
    p, group = np.full(places.shape, np.inf), np.zeros((2, len(places)))
    for number, scores in enumerate(table.scores):
        usable = ~np.isnan(scores)
        playing = places == number
        p = np.where(playing, rank_conformally(scores, playing, free & usable), p)
        group += sum_ranks(scores, playing, free & usable & (owner == number))
    players = (~free).sum(axis=1)
    tests = [min_benjamini_hochberg(p, players)] if single else []
    with np.errstate(divide="ignore", invalid="ignore"):
        together = np.where(group[1] > 0, scipy.special.ndtr(-group[0] / np.sqrt(group[1])), np.inf)
    tests.append(np.where(players > 1, together, np.inf))
    done = np.sum([np.isfinite(each) for each in tests], axis=0)
    return np.asarray(np.maximum(done, 1) * np.min(tests, axis=0) <= alpha)


def _assign(table: ScoreTable, places: Ints, rng: np.random.Generator) -> Ints:
    """From a table of scores: the stratum whose group test each control takes part in."""
    played = (places[:, :, None] == np.arange(len(table.scores))).any(axis=1)
    own = np.broadcast_to(table.owner, places.shape)
    kept = (own >= 0) & np.take_along_axis(played, np.maximum(own, 0), axis=1)
    drawn = np.floor(rng.random(places.shape) * played.sum(axis=1, keepdims=True)).astype(np.int64)
    order = np.argsort(~played, axis=1, kind="stable")
    return np.where(kept, own, np.take_along_axis(order, drawn, axis=1))
