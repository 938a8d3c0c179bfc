"""Rank tests within strata: both sides are compared only inside a stratum, and the strata are combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from recollect.errors import NotEnoughData
from recollect.stats.groups import Floats
from recollect.stats.midranks import midranks

EXACT_UNITS = 400
"""Up to so many units the null distribution is drawn; beyond, the sum is normal."""
DRAWS = 9999
"""How many times labels are dealt out anew."""


@dataclass(frozen=True, kw_only=True)
class StratifiedTest:
    """The p-value of "inside every stratum both sides are alike", against "one scores higher"."""

    p: float
    strata: int
    """How many strata have units of both sides; the others say nothing."""
    above: int
    """Units of the one side in them."""
    below: int
    """Units of the other side in them."""


def van_elteren(
    strata: Sequence[tuple[Floats, Floats]], *, rng: np.random.Generator, draws: int = DRAWS
) -> StratifiedTest:
    """Wilcoxon's rank sum in every stratum, weighed by one over the stratum's size plus one (van Elteren 1960).

    Locally most powerful if the shift is the same in all strata; with a single stratum it is the Mann–Whitney test. Up
    to 400 units its null distribution is that of labels dealt out anew within strata, beyond that it is normal.

    >>> one, other = np.array([5.0, 6.0, 7.0]), np.array([1.0, 2.0, 3.0, 4.0])
    >>> van_elteren([(one, other), (other, other - 2)], rng=np.random.default_rng(0)).p < 0.05
    True

    Args:
        strata: The scores of the one side, expected to be higher, and of the other, by stratum.
        rng: Where the dealings come from.
        draws: How many there are; p is never below 1 / (draws + 1).

    Raises:
        NotEnoughData: No stratum has units of both sides.
    """
    usable = [(above, below) for above, below in strata if len(above) and len(below)]
    if not usable:
        raise NotEnoughData(
            "No stratum has units of both sides.",
            do="Give controls of the same amounts as the audited.",
            code="no_common_strata",
        )
    if sum(len(above) + len(below) for above, below in usable) > EXACT_UNITS:
        p = compute_normal_p(usable)
    else:
        observed, drawn = 0.0, np.zeros(draws)
        for above, below in usable:
            ranks = rank_stratum(above, below)
            observed += float(ranks[: len(above)].sum())
            drawn += _draw_sums(ranks, len(above), rng, draws)
        p = (1 + int(np.count_nonzero(drawn >= observed - 1e-9))) / (1 + draws)
    return StratifiedTest(
        p=p,
        strata=len(usable),
        above=sum(len(above) for above, _ in usable),
        below=sum(len(below) for _, below in usable),
    )


def compute_normal_p(strata: Sequence[tuple[Floats, Floats]]) -> float:
    """The p-value of van Elteren's sum over strata that have units of both sides, by the normal approximation.

    >>> compute_normal_p([(np.arange(5.0, 9.0), np.arange(4.0)), (np.arange(5.0, 9.0), np.arange(4.0))]) < 0.01
    True
    """
    observed = variance = 0.0
    for above, below in strata:
        ranks, n, m = rank_stratum(above, below), len(above), len(below)
        observed += float(ranks[:n].sum())
        variance += n * m * float(np.square(ranks).sum()) / ((n + m) * max(1, n + m - 1))
    return float(scipy.special.ndtr(-observed / variance**0.5)) if variance > 0 else 1.0


def rank_stratum(above: Floats, below: Floats) -> Floats:
    """Van Elteren's ranks of one stratum, the one side first: divided by its size plus one, and centred.

    >>> rank_stratum(np.array([3.0]), np.array([1.0, 2.0])).tolist()
    [0.25, -0.25, 0.0]
    """
    ranks = midranks(np.concatenate([above, below])) / (len(above) + len(below) + 1)
    return np.asarray(ranks - ranks.mean())


def _draw_sums(centred: Floats, count: int, rng: np.random.Generator, draws: int) -> Floats:
    """Sums of so many values of one stratum that add up to 0, drawn without replacement."""
    if count == 1:
        return np.asarray(rng.choice(centred, draws))
    if count == len(centred) - 1:
        return np.asarray(-rng.choice(centred, draws))
    return np.asarray(rng.permuted(np.tile(centred, (draws, 1)), axis=1)[:, :count].sum(axis=1))
