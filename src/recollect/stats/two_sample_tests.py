"""Two groups compared: a p-value, and beside it how large the difference is, with an interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from recollect.checks import check_at_least, check_between, check_one_of
from recollect.errors import NotEnoughData
from recollect.stats.auc import auc, placements
from recollect.stats.bootstrap import MAX_CELLS
from recollect.stats.groups import (
    Floats,
    Group,
    ValuesLike,
    count_groups,
    make_groups,
    require_finite,
    require_one_value_per_user,
    require_users,
)
from recollect.stats.intervals import Estimate, Interval, estimate_mean, weighted_sum
from recollect.stats.significance import Alternative
from recollect.stats.tied_ranks import rank_sum_p


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Whether members and others differ, and by how much."""

    p: float
    alternative: Alternative
    """What a small p speaks for: members "greater" or "less" than others, or "two-sided"."""
    effect: Estimate
    """How large the difference is."""
    method: str


def mann_whitney(
    members: ValuesLike, non_members: ValuesLike, *, alternative: Alternative = "greater", confidence: float = 0.95
) -> Comparison:
    """Rank test of two groups with one value per user; the effect is the AUC (common-language effect size).

    >>> comparison = mann_whitney([5, 6, 7, 8], [1, 2, 3, 4])
    >>> comparison.effect.value, round(comparison.p, 4)
    (1.0, 0.0143)
    """
    a, b = require_one_value_per_user(members, non_members, test="Mann–Whitney")
    p = rank_sum_p(a.values, b.values, alternative)
    effect = auc(members, non_members, confidence=confidence)
    return Comparison(p=p, alternative=alternative, effect=effect, method="Mann–Whitney")


def kolmogorov_smirnov(members: ValuesLike, non_members: ValuesLike, *, confidence: float = 0.95) -> Comparison:
    """Whether two distributions differ anywhere; the effect is their largest distance, 0 to 1.

    Its interval is that of Dvoretzky, Kiefer, Wolfowitz and Massart, half of the error for each group: it always holds.

    >>> kolmogorov_smirnov([5, 6, 7, 8], [1, 2, 3, 4]).effect.value
    1.0
    """
    check_between(0, 1, confidence=confidence)
    a, b = require_one_value_per_user(members, non_members, test="Kolmogorov–Smirnov")
    found = scipy.stats.ks_2samp(a.values, b.values)
    slack = sum((np.log(4 / (1 - confidence)) / (2 * len(group))) ** 0.5 for group in (a, b))
    distance = float(found.statistic)
    interval = Interval(max(0.0, distance - slack), min(1.0, distance + slack), confidence)
    effect = Estimate(
        value=distance, interval=interval, n=count_groups(a, b), method="Dvoretzky–Kiefer–Wolfowitz–Massart"
    )
    return Comparison(p=float(found.pvalue), alternative="two-sided", effect=effect, method="Kolmogorov–Smirnov")


def permutation(
    members: ValuesLike,
    non_members: ValuesLike,
    *,
    rng: np.random.Generator,
    of: Literal["means", "ranks"] = "means",
    alternative: Alternative = "greater",
    draws: int = 9999,
) -> Comparison:
    """Whether two groups of users differ, by dealing the users out anew; holds for any distribution.

    A user keeps all its records, so that records of one user are never taken for independent. The effect is the
    difference of means, or with `of="ranks"` the AUC; with 95 % confidence.

    >>> comparison = permutation([5, 6, 7, 8, 9], [1, 2, 3, 4, 5], rng=np.random.default_rng(0))
    >>> comparison.effect.value, comparison.p < 0.05
    (4.0, True)

    Args:
        members: One group, with owners where records share them; no user may be in both.
        non_members: The other group.
        rng: Where the dealings come from.
        of: What is compared: the values or their ranks among all.
        alternative: What a small p speaks for.
        draws: How many dealings; p is never below 1 / (draws + 1).
    """
    check_one_of(["means", "ranks"], of=of)
    check_at_least(99, draws=draws)
    a, b = make_groups(members, non_members)
    _refuse_shared_users(a, b)
    if of == "ranks":
        pooled = np.concatenate([a.values, b.values])
        values, effect = (placements(a.values, pooled), placements(b.values, pooled)), auc(members, non_members)
    else:
        values = (
            require_finite(a, purpose="A difference of means").values,
            require_finite(b, purpose="A difference of means").values,
        )
        means = [(1.0, estimate_mean(a, of="members")), (-1.0, estimate_mean(b, of="others"))]
        effect = weighted_sum(means, n=count_groups(a, b))
    p = _compute_permutation_p(values, a, b, _permute_labels(a.user_count, a.population, rng, draws), alternative)
    return Comparison(p=p, alternative=alternative, effect=effect, method=f"permutation of users, {of}, {draws} draws")


def _refuse_shared_users(a: Group, b: Group) -> None:
    """Refuse a two-sample test by permutation if a user is in both samples."""
    require_users(a, b, purpose="A permutation test")
    both = a.user_count + b.user_count - a.population
    if both:
        raise NotEnoughData(
            f"{both} users have records on both sides, so that users cannot be permuted.",
            do="Compare users who are on one side only.",
            code="users_on_both_sides",
        )


def _compute_permutation_p(
    values: tuple[Floats, Floats], a: Group, b: Group, permutations: Iterator[Floats], alternative: Alternative
) -> float:
    """The p-value of a two-sample permutation test: the share of labels as extreme as the observed ones."""
    sums = a.per_user(values[0]) + b.per_user(values[1])
    sizes = a.sizes + b.sizes
    observed = _compute_mean_difference((a.sizes > 0).astype(np.float64)[None], sums, sizes)
    # Equal differences may come out unequal in the last digits; they count against the finding.
    slack = 1e-12 * np.abs(np.concatenate(values)).max()
    above = below = total = 1
    for labels in permutations:
        gaps = _compute_mean_difference(labels, sums, sizes)
        above += int(np.count_nonzero(gaps >= observed - slack))
        below += int(np.count_nonzero(gaps <= observed + slack))
        total += len(gaps)
    extreme = {"greater": above, "less": below, "two-sided": 2 * min(above, below)}[alternative]
    return min(1.0, extreme / total)


def _compute_mean_difference(labels: Floats, sums: Floats, sizes: Floats) -> Floats:
    """Mean of the sample labelled 1 minus mean of the rest, for each row of labels."""
    taken, size = labels @ sums, labels @ sizes
    return np.asarray(taken / size - (sums.sum() - taken) / (sizes.sum() - size))


def _permute_labels(members: int, users: int, rng: np.random.Generator, draws: int) -> Iterator[Floats]:
    """Permuted labels of two samples, as many ones as there are members, in blocks that fit into memory."""
    block = max(1, MAX_CELLS // users)
    labels = (np.arange(users) < members).astype(np.float64)
    for first in range(0, draws, block):
        yield rng.permuted(np.tile(labels, (min(block, draws - first), 1)), axis=1)
