"""Axes: where a value is between the ends of its axis, and which values are written along it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
_MIN_SPAN = 1e-300
"""Numbers closer together than this cannot be divided any more."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """An axis from `low` to `high`."""

    low: float
    high: float
    label: str = ""
    """What it measures, with its unit."""
    log: bool = False
    percent: bool = False
    """Whether shares are written as percentages."""
    named: tuple[tuple[float, str], ...] = ()
    """Places with names, instead of numbers along the axis."""

    @classmethod
    def over(cls, *values: ArrayLike, label: str, zero: bool = False) -> Scale:
        """An axis that holds all finite values between two fairly round numbers.

        >>> scale = Scale.over([3.2, 17.9], label="bits")
        >>> scale.low, scale.high
        (3.0, 18.0)
        """
        every = np.concatenate([np.ravel(np.asarray(each, dtype=np.float64)) for each in values])
        finite = every[np.isfinite(every)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        low, high = (min(0.0, low), max(0.0, high)) if zero else (low, high)
        is_wide = high - low > max(_MIN_SPAN, 1e-8 * max(abs(low), abs(high)))
        step = _choose_tick_step(high - low) / 5 if is_wide else max(1.0, abs(high))
        # the division of a number too small for it gives zero, which need not hold the number
        start, end = min(low, math.floor(low / step) * step), max(high, math.ceil(high / step) * step)
        return cls(low=start, high=end if end > start else start + step, label=label)

    def to_unit(self, values: ArrayLike) -> Floats:
        """Where the values are, from 0 at the low end to 1 at the high end; what is outside is at the end.

        >>> Scale(low=0.001, high=1, log=True).to_unit([0.0, 0.001, 1]).tolist()
        [0.0, 0.0, 1.0]
        """
        inside = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        low, high = self.low, self.high
        if self.log:
            inside, low, high = np.log10(inside), math.log10(low), math.log10(high)
        return np.asarray((inside - low) / (high - low), dtype=np.float64)

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """The values that are written along the axis.

        >>> Scale(low=0.01, high=1, log=True, percent=True).ticks
        ((0.01, '1 %'), (0.1, '10 %'), (1.0, '100 %'))
        """
        if self.named:
            return self.named
        if self.log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            values = [10.0**power for power in powers]
        else:
            step = _choose_tick_step(self.high - self.low)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            values = [multiple * step for multiple in range(first, last + 1)]
        return tuple((value, self.format_value(value)) for value in values)

    def format_value(self, value: float) -> str:
        """A value as it is written along the axis."""
        return f"{100 * value:.6g} %" if self.percent else f"{value:,.10g}"


def _choose_tick_step(span: float) -> float:
    """A round step between the ticks of a scale that divides a span into about five.

    >>> _choose_tick_step(1.0), _choose_tick_step(17.0), _choose_tick_step(4000)
    (0.2, 5.0, 1000.0)
    """
    rough = span / 5
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
