"""Exposure: by how many bits a model shortens the search for a secret (Carlini et al. 2018, section 4).

Exposure is log₂|R| − log₂ rank, where R is the space of all secrets of the format and the rank counts those that the
model finds at least as likely. A secret that was never trained on has a random rank: 1.44 bits on average.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recollect.checks import check_at_least, check_between
from recollect.stats.groups import Floats
from recollect.stats.intervals import Estimate, Interval, clopper_pearson
from recollect.stats.requirements import require_count

_MIN_FIT_DRAWS = 100
"""Fewer draws than this say nothing about the tail of a fitted curve."""


def exposure(rank: int, space: int) -> float:
    """The exposure in bits of a secret of that rank (1 = most likely) in a space of that size.

    >>> exposure(1, 2**30), exposure(2**30, 2**30)
    (30.0, 0.0)
    """
    check_at_least(1, rank=rank, space=space)
    check_at_least(rank, space=space)
    return math.log2(space) - math.log2(rank)


def expected_exposure(space: int) -> float:
    """The mean exposure in bits of a secret of random rank, if no two secrets of the space tie; fewer bits if some do.

    >>> [round(expected_exposure(space), 2) for space in (1, 2, 10, 10**9)]
    [0.0, 0.5, 1.14, 1.44]
    """
    check_at_least(1, space=space)
    size = min(space, 10**12)
    return math.log2(size) - math.lgamma(size + 1) / (size * math.log(2))


def sampled_exposure(cost: float, draws: ArrayLike, space: int, *, confidence: float = 0.95) -> Estimate:
    """The exposure of a secret, from secrets drawn uniformly: exact binomial interval on the rank's share of the space.

    The secret itself counts as one more draw, so the value never promises more than was drawn; it is a lower bound
    where no draw was as likely. A secret of the space has at most log₂|R| bits.

    Args:
        cost: The secret's log-perplexity.
        draws: Those of the drawn secrets; ties count against the finding.
        space: |R|.
        confidence: Of the interval.

    >>> estimate = sampled_exposure(3.0, [5.0] * 999, 10**9)
    >>> round(estimate.value, 2), round(estimate.interval.low, 2), round(estimate.interval.high, 2)
    (9.97, 8.08, 29.9)
    """
    found = np.asarray(draws, dtype=np.float64)
    require_count(len(found), 1, of="drawn secrets", purpose="sampled exposure", code="too_few_draws")
    hits, max_bits = int((found <= cost).sum()), math.log2(space)
    share = clopper_pearson(hits, len(found), confidence=confidence)
    low = min(max_bits, abs(math.log2(share.high)))
    high = min(max_bits, -math.log2(share.low)) if share.low > 0 else max_bits
    return Estimate(
        value=min(max_bits, abs(math.log2((hits + 1) / (len(found) + 1)))),
        interval=Interval(low, high, confidence=confidence),
        n={"draws": len(found), "draws_at_least_as_likely": hits},
        method="share of uniform draws at least as likely, Clopper–Pearson",
    )


@dataclass(frozen=True, kw_only=True)
class SkewNormal:
    """The paper's curve: log-perplexities of random secrets, taken to be skew-normal."""

    shape: float
    location: float
    scale: float
    goodness_of_fit_p: float
    """Kolmogorov–Smirnov, on draws that were not fitted: small if the curve is not the draws'."""
    refits: tuple[tuple[float, float, float], ...]
    """Fits to draws drawn again, for the interval; none, and there is no interval."""
    draws: int

    def exposure(self, cost: float, *, confidence: float = 0.95) -> Estimate:
        """−log₂ of the curve's area up to this cost. It knows no bound, and is only as good as the curve's tail."""
        interval = None
        if self.refits:
            refitted_bits = [_compute_exposure_bits(cost, fit) for fit in self.refits]
            low, high = np.quantile(refitted_bits, [(1 - confidence) / 2, (1 + confidence) / 2])
            interval = Interval(float(low), float(high), confidence=confidence)
        return Estimate(
            value=_compute_exposure_bits(cost, (self.shape, self.location, self.scale)),
            interval=interval,
            n={"draws": self.draws},
            method="area under a fitted skew-normal curve; interval from draws drawn again, as if the curve were right",
            why_no_interval="" if self.refits else "The curve was fitted once.",
        )


def fit_skew_normal(draws: ArrayLike, *, rng: np.random.Generator, refits: int = 40) -> SkewNormal:
    """Fit the paper's curve of exposure to half of the drawn secrets and test it on the other half.

    A fitted curve also deviates by random variation, so Kolmogorov and Smirnov's distance is compared with that of
    two samples: otherwise every fourth curve of draws that are skew-normal would be rejected at 5 %.

    Args:
        draws: Log-perplexities of uniformly drawn secrets, in no order.
        rng: Chooses the halves, and draws again.
        refits: How often it is fitted to draws drawn again, which takes most of the time.
    """
    values = np.asarray(draws, dtype=np.float64)
    require_count(len(values), _MIN_FIT_DRAWS, of="drawn secrets", purpose="a fitted curve", code="too_few_draws")
    check_at_least(0, refits=refits)
    order = rng.permutation(len(values))
    fitted, tested = values[order[::2]], values[order[1::2]]
    best = _fit_skew_normal(fitted, (0.0, float(fitted.mean()), float(fitted.std())))
    distance = scipy.stats.kstest(tested, scipy.stats.skewnorm(*best).cdf).statistic
    both = len(fitted) * len(tested) / len(values)
    refitted = tuple(_fit_skew_normal(rng.choice(fitted, len(fitted)), best) for _ in range(refits))
    shape, location, scale = best
    return SkewNormal(
        shape=shape,
        location=location,
        scale=scale,
        goodness_of_fit_p=float(scipy.stats.kstwo.sf(distance, round(both))),
        refits=refitted,
        draws=len(values),
    )


def _fit_skew_normal(values: Floats, start: tuple[float, float, float]) -> tuple[float, float, float]:
    """The exposure curve of maximum likelihood, from a start; its scale is sought as a logarithm."""
    scale = max(start[2], 1e-9 * max(1.0, abs(start[1])))

    def loss(at: Floats) -> float:
        shape, location, log_scale = at
        z = (values - location) / math.exp(log_scale)
        return float(np.mean(z * z / 2 + log_scale - scipy.stats.norm.logcdf(shape * z)))

    skew = float(scipy.stats.skew(values)) if scale > 0 else 0.0
    first = np.array([start[0] or math.copysign(1.0, skew or 1.0), start[1], math.log(scale)])
    found = scipy.optimize.minimize(
        loss, first, method="Nelder-Mead", options={"maxiter": 400, "xatol": 1e-4, "fatol": 1e-8}
    )
    return float(found.x[0]), float(found.x[1]), math.exp(float(found.x[2]))


def _compute_exposure_bits(cost: float, fit: tuple[float, float, float]) -> float:
    """−log₂ of the area up to `cost`, also where it is far too small for a floating-point number."""
    shape, location, scale = fit
    area = float(scipy.stats.skewnorm.cdf(cost, shape, location, scale))
    if area > 1e-6:
        return -math.log2(min(area, 1.0))
    end = (cost - location) / scale
    return -_integrate_log_density(
        lambda z: math.log(2) + scipy.stats.norm.logpdf(z) + scipy.stats.norm.logcdf(shape * z), end
    ) / math.log(2)


def _integrate_log_density(log_density: Callable[[Floats], Floats], end: float) -> float:
    """The logarithm of the area below `end` of the exposure curve, which falls at least as fast as a normal one."""
    reach = 40.0 / max(1.0, abs(end))
    grid = np.linspace(end - reach, end, 4001)
    logs = log_density(grid)
    top = logs.max()
    return float(top + np.log(np.trapezoid(np.exp(logs - top), grid)))


def rank_p(cost: float, draws: ArrayLike) -> float:
    """The p-value of a secret's exposure: "this secret was never trained on", if it was drawn as the draws were.

    >>> rank_p(3.0, [5.0] * 99)
    0.01
    """
    found = np.asarray(draws, dtype=np.float64)
    check_between(0, math.inf, draws=len(found))
    return float((1 + (found <= cost).sum()) / (1 + len(found)))
