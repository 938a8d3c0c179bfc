"""From exposures to decisions: which secrets are memorised, and whether planted ones rank above controls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.audits.common.power import smallest_conformal_p, smallest_rank_p
from recollect.audits.exposure.exposure_measurement import Measurement
from recollect.stats.groups import Floats
from recollect.stats.significance import conformal_p, holm, simes
from recollect.stats.strata import DRAWS, van_elteren
from recollect.stats.two_sample_tests import mann_whitney
from recollect.streams import stream

Stratum = tuple[Floats, Floats]
"""Exposures of planted secrets and of controls that are compared with each other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """The decisions about some secrets, from their exposures."""

    secrets: tuple[Measurement, ...]
    """All but the controls."""
    controls: tuple[Measurement, ...]
    by_repetitions: Mapping[int, tuple[Measurement, ...]]
    """The secrets by how often they were planted, where that is known."""
    p_by_repetitions: Mapping[int, float]
    """Of each such group that has controls of its formats, against these, corrected for all such groups."""
    compared_controls: Mapping[int, tuple[int, int]]
    """With how many controls each of them is compared, and of how many formats."""
    p_corrected: NDArray[np.float64] | None
    """Of each secret among random draws, corrected for all secrets; None if the secrets were not drawn at random."""
    any_p: float | None
    """Of "none of the secrets is memorised", from all of them among random draws (Simes); None likewise."""
    smallest_p: float
    """The smallest p-value that these secrets could have given, if all of them were the likeliest of their formats."""
    alpha: float
    """The significance level of each of the two kinds of test."""

    @property
    def attainable(self) -> bool:
        """Whether memorised secrets could have been found at all: not if there are few possible ones of a format."""
        return self.smallest_p < self.alpha

    @property
    def needed_space(self) -> int:
        """How many possible secrets of a format are enough for a decision that all of these are memorised."""
        return int(len(self.secrets) / self.alpha + 1e-9) + 1

    @property
    def needed_draws(self) -> int:
        """How many random draws are enough for it."""
        return int(1 / self.alpha + 1e-9)

    @property
    def memorised(self) -> int:
        """How many secrets rank higher than random ones, each on its own."""
        return 0 if self.p_corrected is None else int((self.p_corrected < self.alpha).sum())

    @property
    def above_random(self) -> bool:
        """Whether the secrets, all together, rank higher than random ones."""
        return self.any_p is not None and self.any_p < self.alpha

    @property
    def above_controls(self) -> tuple[int, ...]:
        """How often those secrets were planted that, as a group, rank higher than the controls."""
        return tuple(times for times, p in self.p_by_repetitions.items() if p < self.alpha)

    @property
    def found(self) -> bool:
        """Whether the model memorised some of the secrets."""
        return self.above_random or bool(self.above_controls)


def decide(rows: Sequence[Measurement], *, alpha: float, at_random: bool, draws: int | None = None) -> Decisions:
    """Decide which secrets are memorised: test them against random draws, and against controls where there are some.

    Args:
        rows: All secrets that were measured, controls included.
        alpha: The significance level of all tests together.
        at_random: Whether the secrets were drawn at random, so that they can be compared with random draws.
        draws: How many random draws show the ranks; None where ranks can be counted.
    """
    secrets = tuple(row for row in rows if not row.secret.is_control)
    controls = tuple(row for row in rows if row.secret.is_control)
    times = sorted({row.secret.planted for row in secrets if row.secret.planted is not None})
    groups = {planted: tuple(row for row in secrets if row.secret.planted == planted) for planted in times}
    paired = {planted: _pair_with_controls(group, controls) for planted, group in groups.items()}
    compared = {planted: strata for planted, strata in paired.items() if strata}
    p = [_compare_with_controls(strata) for strata in compared.values()]
    return Decisions(
        secrets=secrets,
        controls=controls,
        by_repetitions=groups,
        p_by_repetitions=dict(zip(compared, holm(p).tolist(), strict=True)) if p else {},
        compared_controls={
            planted: (sum(len(theirs) for _, theirs in strata), len(strata)) for planted, strata in compared.items()
        },
        p_corrected=holm([row.p_value for row in secrets]) if at_random else None,
        # draws are shared, which makes these p-values positively dependent: Simes' test is valid for those
        any_p=simes([row.p_value for row in secrets]) if at_random else None,
        smallest_p=min(
            _find_smallest_random_p(secrets, draws) if at_random else 1.0,
            *(len(p) * _find_smallest_control_p(strata) for strata in compared.values()),
            1.0,
        ),
        # where there are two kinds of test they share alpha, so that the false positive rate stays below it
        alpha=alpha / 2 if p else alpha,
    )


def _find_smallest_random_p(secrets: Sequence[Measurement], draws: int | None) -> float:
    """The smallest p-value of exposures among random draws: if secrets are the likeliest fillings of their formats."""
    best = list[float]()
    for kind in {row.secret.kind for row in secrets}:
        own = [row.secret for row in secrets if row.secret.kind == kind]
        best += [place / own[0].parsed.size for place in range(1, len(own) + 1)]
    return simes(np.clip(best, 0.0 if draws is None else 1 / (1 + draws), 1.0))


def _pair_with_controls(planted: Sequence[Measurement], controls: Sequence[Measurement]) -> list[Stratum]:
    """For decisions by controls: the exposures of both by their formats.

    One of two possible secrets has at most one bit, and half of all one of a million have more; and of a format whose
    secrets a model finds equally likely, ties leave no bits at all: only secrets of one format rank alike under the
    null hypothesis.
    """
    formats = sorted({row.secret.format for row in planted} & {row.secret.format for row in controls})
    found = list[Stratum]()
    for format in formats:
        ours, theirs = (
            np.array([row.compared_bits for row in rows if row.secret.format == format]) for rows in (planted, controls)
        )
        found.append((ours, theirs))
    return found


def _find_smallest_control_p(strata: Sequence[Stratum]) -> float:
    """The smallest p-value of exposures against controls: if all planted secrets rank above them."""
    if len(strata) > 1:
        together = math.prod(smallest_rank_p(len(ours), len(theirs)) for ours, theirs in strata)
        return max(together, 1 / (1 + DRAWS))
    planted, controls = map(len, strata[0])
    if planted > 1 and controls > 1:
        return smallest_rank_p(planted, controls)
    return min(1.0, planted * smallest_conformal_p(controls))


def _compare_with_controls(strata: Sequence[Stratum]) -> float:
    """A p-value for the decision on "the planted secrets rank like the controls", valid for any model."""
    if len(strata) > 1:
        return van_elteren(strata, rng=stream(0, *labels.STREAM_EXPOSURE_STRATA)).p
    ours, theirs = strata[0]
    if len(ours) > 1 and len(theirs) > 1:
        return mann_whitney(ours, theirs).p
    # Bonferroni over the planted secrets
    return min(1.0, float(conformal_p(ours, theirs).min()) * len(ours))
