"""What the paper prints: accuracy, AUC, precision and recall of its audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Printed:
    """The figures of one line of a table; None where the paper has none."""

    auc: float | None = None
    accuracy: float | None = None
    precision: float | None = None
    recall: float | None = None


def line(accuracy: float, auc: float, precision: float, recall: float) -> Printed:
    """A line in the paper's order."""
    return Printed(accuracy=accuracy, auc=auc, precision=precision, recall=recall)


PERFECT = line(1.0, 1.0, 1.0, 1.0)
"""Section 4.3: all words shown, all texts queried."""
Sizes = Mapping[int, Printed]
"""Lines by the number of words shown."""
TABLE2 = {
    "word prediction": line(0.990, 0.993, 0.983, 0.996),
    "translation": line(0.965, 0.981, 0.937, 0.996),
    "dialogue": line(0.978, 0.998, 0.958, 1.000),
}
TABLE3: Mapping[str, Sizes] = {
    "word prediction": {
        1: line(0.545, 0.549, 0.574, 0.350),
        5: line(0.550, 0.572, 0.553, 0.520),
        10: line(0.580, 0.602, 0.582, 0.570),
        50: line(0.605, 0.648, 0.606, 0.600),
        100: line(0.725, 0.788, 0.765, 0.650),
        500: line(0.970, 0.998, 0.970, 0.970),
        1000: line(0.985, 0.999, 0.971, 1.000),
    },
    "translation": {
        1: line(0.723, 0.785, 0.770, 0.637),
        5: line(0.748, 0.838, 0.767, 0.713),
        10: line(0.800, 0.880, 0.783, 0.830),
        50: line(0.928, 0.973, 0.908, 0.953),
        100: line(0.948, 0.981, 0.944, 0.953),
        500: line(0.972, 0.988, 0.958, 0.987),
        1000: line(0.960, 0.984, 0.939, 0.983),
    },
    "dialogue": {
        1: line(0.577, 0.618, 0.582, 0.547),
        5: line(0.575, 0.642, 0.582, 0.530),
        10: line(0.583, 0.645, 0.591, 0.543),
        50: line(0.605, 0.660, 0.611, 0.580),
        100: line(0.647, 0.714, 0.643, 0.660),
        500: line(0.935, 0.975, 0.917, 0.957),
        1000: line(0.972, 0.995, 0.955, 0.990),
    },
}
"""Same domain."""
CROSS_DOMAIN: Mapping[str, Sizes] = {
    "word prediction": {
        1: line(0.505, 0.589, 0.667, 0.020),
        5: line(0.490, 0.525, 0.495, 0.920),
        10: line(0.500, 0.552, 0.500, 0.950),
        50: line(0.505, 0.659, 0.503, 0.980),
        100: line(0.585, 0.714, 0.549, 0.950),
        500: line(0.905, 0.992, 0.988, 0.820),
        1000: line(0.910, 0.999, 1.000, 0.820),
    },
    "translation": {
        1: line(0.723, 0.785, 0.712, 0.750),
        5: line(0.767, 0.834, 0.755, 0.790),
        10: line(0.805, 0.878, 0.814, 0.790),
        50: line(0.925, 0.979, 0.947, 0.900),
        100: line(0.942, 0.978, 0.965, 0.917),
        500: line(0.970, 0.988, 0.983, 0.957),
        1000: line(0.967, 0.985, 0.973, 0.960),
    },
    "dialogue": {
        1: line(0.538, 0.618, 0.520, 0.977),
        5: line(0.552, 0.643, 0.528, 0.970),
        10: line(0.543, 0.638, 0.523, 0.977),
        50: line(0.537, 0.610, 0.520, 0.963),
        100: line(0.570, 0.669, 0.541, 0.920),
        500: line(0.925, 0.969, 0.895, 0.963),
        1000: line(0.962, 0.992, 0.948, 0.977),
    },
}
"""Table 3, shadows of another domain."""
GOOGLE, YANDEX = line(0.580, 0.858, 0.944, 0.170), line(0.500, 0.782, 0.500, 0.010)
"""Table 5: round trips through two translation services."""
