"""P-values that hold: conformal ones against controls, corrections for many tests, checks of p-values themselves."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recollect.checks import check_between
from recollect.stats.groups import Floats, ValuesLike, make_group
from recollect.stats.requirements import require_count, required_controls

Alternative = Literal["greater", "less", "two-sided"]


def conformal_p(
    scores: ArrayLike, controls: ValuesLike, *, alpha: float | None = None, rng: np.random.Generator | None = None
) -> Floats:
    """The significance of each score: how rarely a control scores as high (a valid conformal p-value).

    p = (1 + controls at least as high) / (1 + controls), ties against the finding (Vovk et al. 2005). Where controls
    share users, each user counts once, spread over its records (Lee, Barber & Willett 2023, "Distribution-free
    inference with hierarchical data"): valid for a record of a user who is like the controls' users. P-values against
    one set of controls depend on each other in a way (PRDS) under which Benjamini–Hochberg holds (Bates et al. 2023,
    "Testing for outliers with conformal p-values"), so long as the tested records have different users.

    >>> conformal_p([5.0, 2.0, 0.0], [1.0, 2.0, 3.0, 4.0]).tolist()
    [0.2, 0.8, 1.0]

    Args:
        scores: What is tested; the p-values come back in this order.
        controls: Scores known not to come from training, of the same kind as those tested.
        alpha: Refuse if there are too few controls for any p-value to reach this level.
        rng: If given, ties are broken at random, which makes the p-values exactly uniform under the null.
    """
    group = make_group(controls, name="controls")
    users = group.user_count
    if alpha is not None:
        check_between(0, 1, alpha=alpha)
        of = "users among the controls" if group.is_clustered else "controls"
        require_count(
            users, required_controls(alpha), of=of, purpose=f"A p-value of {alpha:g}", code="too_few_controls"
        )
    order = np.argsort(group.values, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(1 / group.sizes[group.users[order]])])
    tested = make_group(scores, name="scores").values
    ordered = group.values[order]
    # The rounding undoes what adding thirds and sevenths leaves behind, so that p ≤ 0.05 means that.
    at_least = np.round(users - below[np.searchsorted(ordered, tested, side="left")], 9)
    if rng is None:
        return np.asarray((1 + at_least) / (users + 1))
    above = np.round(users - below[np.searchsorted(ordered, tested, side="right")], 9)
    return np.asarray((above + rng.random(len(tested)) * (1 + at_least - above)) / (users + 1))


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """P-values adjusted so that among those ≤ α at most a share α is expected to be false.

    >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.5]).round(4).tolist()
    [0.04, 0.0533, 0.0533, 0.5]
    """
    values = _check_p_values(p)
    order = np.argsort(values)
    steps = values[order] * (len(values) / np.arange(1, len(values) + 1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1, np.minimum.accumulate(steps[::-1])[::-1])
    return adjusted


def holm(p: ArrayLike) -> Floats:
    """P-values adjusted so that any false one is ≤ α with probability at most α, whatever their dependence.

    >>> holm([0.01, 0.04, 0.03, 0.5]).round(4).tolist()
    [0.04, 0.09, 0.09, 0.5]
    """
    values = _check_p_values(p)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(steps))
    return adjusted


def simes(p: ArrayLike) -> float:
    """One p-value of "none of these hypotheses is false", for independent or positively dependent p-values.

    Simes 1986: never larger than Bonferroni's, and far smaller where many are small.

    >>> round(simes([0.02, 0.02, 0.02, 0.5]), 4)  # 0.08 by Bonferroni
    0.0267
    """
    return float(benjamini_hochberg(p).min())


def bonferroni(p: ArrayLike) -> Floats:
    """P-values times their number: simpler than Holm and never better; for a fixed number of looks.

    >>> bonferroni([0.01, 0.5]).tolist()
    [0.02, 1.0]
    """
    values = _check_p_values(p)
    return np.minimum(1, values * len(values))


def binomial_p(hits: int, n: int, rate: float, *, alternative: Alternative = "greater") -> float:
    """The significance of so many hits (or more) of `n` if each has probability `rate`; exact.

    >>> binomial_p(88, 100, 0.5) < 1e-14
    True
    """
    return float(scipy.stats.binomtest(hits, n, rate, alternative=alternative).pvalue)


def superuniformity_p(p: ArrayLike) -> float:
    """The significance of "these p-values are too small to be uniform": small if a test fires too often.

    One-sided Kolmogorov–Smirnov: p-values that are too large, as discrete ones are, count as right.

    >>> superuniformity_p(np.linspace(0, 1, 200)) > 0.5, superuniformity_p(np.linspace(0, 0.5, 200)) < 1e-9
    (True, True)
    """
    return float(scipy.stats.kstest(_check_p_values(p), "uniform", alternative="greater").pvalue)


def _check_p_values(p: ArrayLike) -> Floats:
    """The p-values as a vector, each between 0 and 1."""
    values = make_group(p, name="p-values").values
    if len(values) and not (values.min() >= 0 and values.max() <= 1):
        raise ValueError("p-values must be between 0 and 1")
    return values
