"""The exposure of each secret: from draws, and where it is rarer than draws can show, by counting ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recollect.audits.exposure.log_perplexity import LogPerplexities
from recollect.audits.exposure.prefix_tree import PrefixTree, build_secret_tree
from recollect.audits.exposure.rank_counting import Rank, count_rank, read_counted_rank
from recollect.audits.exposure.secrets import Secret, SecretKind, pick_examples
from recollect.audits.workspace import Progress
from recollect.digests import digest
from recollect.errors import ModelError, NotEnoughData
from recollect.files import write_checked_json
from recollect.models.model import Stepper
from recollect.stats.exposure import SkewNormal, exposure, fit_skew_normal, rank_p, sampled_exposure

Method = Literal["auto", "exact", "sampled", "skew-normal"]
FEW_HITS = 10
"""With fewer draws as likely as the secret, sampling estimates its rank poorly."""
GOOD_FIT = 0.01
"""A curve whose goodness of fit has a smaller p-value is rejected."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One row of the table."""

    secret: Secret
    exposure_bits: float
    lower: float
    upper: float
    rank: float
    """Counted, or from the share of draws, or from the fitted curve."""
    log_perplexity_bits: float
    method: str
    steps: int
    p_value: float
    """That a secret drawn at random has such a rank."""
    skew_normal_bits: float | None
    """The exposure by the paper's curve, for comparison."""
    sampled_bits: float | None = None
    """The exposure from draws alone, where `auto` counted the rank besides."""

    @property
    def compared_bits(self) -> float:
        """By what secrets and controls are compared: measured in the same way for both."""
        return self.exposure_bits if self.sampled_bits is None else self.sampled_bits

    @property
    def curve_disagrees(self) -> bool:
        """Whether the exposure by the paper's curve is outside this secret's interval."""
        bits = self.skew_normal_bits
        return bits is not None and not self.lower - 0.5 <= bits <= self.upper + 0.5

    @property
    def is_first_guess(self) -> bool:
        """Whether it is proven to be the most likely of all fillings of its format."""
        return self.method == "exact" and self.rank == 1 and self.secret.parsed.size > 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurements:
    """All secrets that were measured, and what was not."""

    rows: tuple[Measurement, ...]
    scores: LogPerplexities
    """The scores that they were measured from."""
    curves: tuple[SkewNormal | None, ...]
    """The paper's curve of each kind of secret."""
    unknown: int
    """How many secrets are left out: the model's vocabulary does not cover them."""
    uncountable: tuple[str, ...]
    """Why the ranks of some formats could not be counted."""


class Measurer:
    """Measures secrets of one model, format by format."""

    def __init__(
        self,
        *,
        method: Method,
        open_stepper: Callable[[], Stepper] | None,
        max_steps: int,
        folder: Path | None,
        progress: Progress,
    ) -> None:
        """Prepare the means of measuring.

        Args:
            method: How.
            open_stepper: Opens the model step by step, once a rank has to be counted; None if it does not show steps.
            max_steps: How many nodes may be read for one secret.
            folder: Where counted ranks are kept, to resume from.
            progress: Called with how far a count is.
        """
        self._method, self._max_steps = method, max_steps
        self._open_stepper = None if open_stepper is None else cache(open_stepper)
        self._folder, self._progress = folder, progress
        self._trees: dict[SecretKind, PrefixTree | ModelError] = {}
        self._uncountable: set[str] = set()

    def measure_all(self, secrets: Sequence[Secret], scores: LogPerplexities, rng: np.random.Generator) -> Measurements:
        """The exposure of every secret that the model's vocabulary covers.

        Raises:
            NotEnoughData: It covers none but controls.
        """
        known = [secret for secret in secrets if not math.isnan(scores.secrets[secret.id])]
        if all(secret.is_control for secret in known):
            raise NotEnoughData(
                "The model's vocabulary does not cover any of the secrets: it reads their tokens as unknown.",
                do="Force the format's tokens into the vocabulary when training (recollect train --canaries).",
                code="secrets_not_in_vocabulary",
            )
        curves = {
            each.kind: _fit_skew_normal_curve(scores.draws[each.kind], rng, self._method)
            for each in sorted(pick_examples(known), key=lambda each: (each.format, str(each.kind[1])))
        }
        # one that the model holds to be impossible is the least likely, and no unknown one
        drawn = {kind: draws[~np.isnan(draws)] for kind, draws in scores.draws.items()}
        rows = []
        for done, secret in enumerate(known):
            kind = secret.kind
            rows.append(self._measure(secret, scores.secrets[secret.id], drawn[kind], curves[kind]))
            self._progress("measuring", done + 1, len(known))
        return Measurements(
            rows=tuple(rows),
            scores=scores,
            curves=tuple(curves.values()),
            unknown=len(secrets) - len(known),
            uncountable=tuple(sorted(self._uncountable)),
        )

    def _measure(
        self, secret: Secret, bits: float, draws: NDArray[np.float64], curve: SkewNormal | None
    ) -> Measurement:
        """The exposure of a secret of that log-perplexity among the draws of its kind."""
        space, fitted = secret.parsed.size, None if curve is None else curve.exposure(bits)
        drawn = sampled_exposure(bits, draws, space)
        assert drawn.interval is not None  # noqa: S101 - it always has one
        found = Measurement(
            secret=secret,
            exposure_bits=drawn.value,
            lower=drawn.interval.low,
            upper=drawn.interval.high,
            rank=space * 2.0**-drawn.value,
            log_perplexity_bits=bits,
            method="sampled",
            steps=0,
            p_value=rank_p(bits, draws),
            skew_normal_bits=None if fitted is None else fitted.value,
        )
        if self._method == "skew-normal" and fitted is not None and fitted.interval is not None:
            # the curve knows no bound, but no secret of the space has more bits than the space
            value, low, high = np.minimum([fitted.value, fitted.interval.low, fitted.interval.high], math.log2(space))
            rank = max(1.0, space * 2.0**-value)
            return _replace_exposure(found, float(value), float(low), float(high), rank=rank, method="skew-normal")
        if self._method == "exact":
            return self._count(found)
        # a control among the likeliest is there by chance: a count would cost most where it says least
        few = drawn.n["draws_at_least_as_likely"] < FEW_HITS and not secret.is_control
        return replace(self._count(found), sampled_bits=drawn.value) if self._method == "auto" and few else found

    def _count(self, found: Measurement) -> Measurement:
        """The same by counting; where the budget ends first, the bounds of both."""
        rank = self._rank(found)
        if isinstance(rank, ModelError):
            if self._method == "exact":
                raise rank
            self._uncountable.add(rank.found)
            return found
        size = found.secret.parsed.size
        low, high = exposure(rank.high, size), exposure(rank.low, size)
        found = replace(found, steps=rank.steps)
        if rank.exact:
            counted = _replace_exposure(found, low, low, low, rank=rank.low, method="exact")
            return replace(counted, p_value=rank.low / size)
        if self._method == "exact":
            # the exact method reports proven bounds only, and no estimate from draws
            return _replace_exposure(found, low, low, high, rank=rank.high, method="exact (bounds)")
        low, high = max(low, found.lower), min(high, found.upper)
        value = min(max(found.exposure_bits, low), high)
        return _replace_exposure(found, value, low, high, rank=size * 2.0**-value, method="sampled and counted")

    def _rank(self, found: Measurement) -> Rank | ModelError:
        """The rank, or why it cannot be counted; one that was counted before is read again, without the model."""
        secret = found.secret
        name = f"{digest(*secret.kind, secret.text)}.json"
        kept = None if self._folder is None else self._folder / name
        if kept is not None and kept.exists():
            return read_counted_rank(kept)
        tree = self._get_tree(secret)
        if isinstance(tree, ModelError):
            return tree
        if math.isinf(found.log_perplexity_bits):  # every secret is at least as likely
            return Rank(low=secret.parsed.size, high=secret.parsed.size, steps=0)
        rank = count_rank(
            tree,
            tree.score(secret.text).cost,
            max_steps=self._max_steps,
            progress=lambda done, most: self._progress(f"counting {secret.id}", done, most),
        )
        if kept is not None:
            write_checked_json(kept, {"low": rank.low, "high": rank.high, "steps": rank.steps})
        return rank

    def _get_tree(self, secret: Secret) -> PrefixTree | ModelError:
        """The secrets of a format as a tree, or why there is none."""
        if secret.kind not in self._trees:
            try:
                self._trees[secret.kind] = build_secret_tree(self._open_stepper, secret)
            except ModelError as error:
                self._trees[secret.kind] = error
        return self._trees[secret.kind]


def _fit_skew_normal_curve(draws: NDArray[np.float64], rng: np.random.Generator, method: Method) -> SkewNormal | None:
    """The paper's skew-normal curve of draws, from which exposure is measured; None where they are too few."""
    known = draws[np.isfinite(draws)]
    if len(known) < 100 or float(np.ptp(known)) < 1e-9:
        return None
    return fit_skew_normal(known, rng=rng, refits=40 if method == "skew-normal" else 0)


def _replace_exposure(
    found: Measurement, value: float, low: float, high: float, *, rank: float, method: str
) -> Measurement:
    """The measurement of a secret with another exposure."""
    assert math.isfinite(value)  # noqa: S101 - an exposure is a number of bits
    return replace(found, exposure_bits=value, lower=low, upper=high, rank=float(rank), method=method)
