"""The exposure of one secret: from draws, and where it lies beyond what they can see, by counting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recollect.audits.desk import Progress
from recollect.audits.exposure.exact import Rank, rank_of
from recollect.audits.exposure.secrets import Secret
from recollect.audits.exposure.space import Space
from recollect.digests import digest
from recollect.errors import ModelError
from recollect.files import read_json, write_json
from recollect.models.model import Stepper
from recollect.stats.exposure import SkewNormal, chance_of_rank, exposure, fit_skew_normal, sampled_exposure

Method = Literal["auto", "exact", "sampled", "skew-normal"]
FEW_HITS = 10
"""With fewer draws as likely as the secret, sampling cannot tell its rank well."""
FITS = 0.01
"""A curve with a smaller p-value is rejected."""


@dataclass(frozen=True, kw_only=True)
class Measured:
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
    """What the paper's curve says, for comparison."""

    @property
    def misled(self) -> bool:
        """Whether the paper's curve says something that this secret's interval rules out."""
        bits = self.skew_normal_bits
        return bits is not None and not self.lower - 0.5 <= bits <= self.upper + 0.5


class Measurer:
    """Measures secrets of one model, format by format."""

    def __init__(
        self, *, method: Method, stepper: Stepper | None, max_steps: int, folder: Path | None, progress: Progress
    ) -> None:
        """Take what there is to measure with.

        Args:
            method: How.
            stepper: The model step by step; None if it cannot be asked so.
            max_steps: How many nodes may be read for one secret.
            folder: Where counted ranks are kept, to go on from.
            progress: Told how far a count is.
        """
        self._method, self._stepper, self._max_steps = method, stepper, max_steps
        self._folder, self._progress = folder, progress
        self._spaces: dict[tuple[str, str | None], Space | ModelError] = {}
        self.unwalkable: set[str] = set()
        """Why some formats could not be walked."""

    def measured(self, secret: Secret, bits: float, draws: NDArray[np.float64], curve: SkewNormal | None) -> Measured:
        """The exposure of a secret.

        Args:
            secret: The secret.
            bits: Its log-perplexity.
            draws: Those of random secrets of its format.
            curve: The paper's curve, if it could be fitted.
        """
        space, fitted = secret.parsed.size, None if curve is None else curve.exposure(bits)
        drawn = sampled_exposure(bits, draws, space)
        assert drawn.interval is not None  # noqa: S101 - it always has one
        found = Measured(
            secret=secret,
            exposure_bits=drawn.value,
            lower=drawn.interval.low,
            upper=drawn.interval.high,
            rank=space * 2.0**-drawn.value,
            log_perplexity_bits=bits,
            method="sampled",
            steps=0,
            p_value=chance_of_rank(bits, draws),
            skew_normal_bits=None if fitted is None else fitted.value,
        )
        if self._method == "skew-normal" and fitted is not None and fitted.interval is not None:
            low, high = fitted.interval.low, fitted.interval.high
            return _changed(found, fitted.value, low, high, rank=space * 2.0**-fitted.value, method="skew-normal")
        few = drawn.n["draws_at_least_as_likely"] < FEW_HITS
        if self._method == "exact" or (self._method == "auto" and few):
            return self._counted(found)
        return found

    def _counted(self, found: Measured) -> Measured:
        """The same by counting; where the budget ends first, the bounds of both."""
        space = self._space(found.secret)
        if isinstance(space, ModelError):
            if self._method == "exact":
                raise space
            self.unwalkable.add(str(space))
            return found
        rank = self._rank(found.secret, space)
        size = found.secret.parsed.size
        low, high = exposure(rank.high, size), exposure(rank.low, size)
        if rank.exact:
            return _changed(
                found, low, low, low, rank=rank.low, method="exact", steps=rank.steps, p_value=rank.low / size
            )
        if self._method == "exact":
            # whoever asks for a count wants what is certain, and nothing that was drawn
            return _changed(found, low, low, high, rank=rank.high, method="exact (bounds)", steps=rank.steps)
        low, high = max(low, found.lower), min(high, found.upper)
        value = min(max(found.exposure_bits, low), high)
        return _changed(
            found, value, low, high, rank=size * 2.0**-value, method="sampled and counted", steps=rank.steps
        )

    def _rank(self, secret: Secret, space: Space) -> Rank:
        """The counted rank, from the folder if it was counted before."""
        kept = (
            None if self._folder is None else self._folder / f"{digest(secret.format, secret.source, secret.text)}.json"
        )
        if kept is not None and kept.exists():
            return Rank(**read_json(kept))
        rank = rank_of(
            space,
            space.known(secret.text).cost,
            max_steps=self._max_steps,
            progress=lambda done, most: self._progress(f"counting {secret.id}", done, most),
        )
        if kept is not None:
            write_json(kept, {"low": rank.low, "high": rank.high, "steps": rank.steps})
        return rank

    def _space(self, secret: Secret) -> Space | ModelError:
        """The secrets of a format as a tree, or why they cannot be walked through."""
        if secret.kind not in self._spaces:
            try:
                self._spaces[secret.kind] = _walkable(self._stepper, secret)
            except ModelError as error:
                self._spaces[secret.kind] = error
        return self._spaces[secret.kind]


def curve_of(draws: NDArray[np.float64], rng: np.random.Generator, method: Method) -> SkewNormal | None:
    """The paper's curve; None where draws are too few, or all alike."""
    known = draws[np.isfinite(draws)]
    if len(known) < 100 or float(np.ptp(known)) < 1e-9:
        return None
    return fit_skew_normal(known, rng=rng, refits=40 if method == "skew-normal" else 0)


def _walkable(stepper: Stepper | None, secret: Secret) -> Space:
    """The tree of a format.

    Raises:
        ModelError: It cannot be walked.
    """
    if stepper is None:
        raise ModelError("This model cannot be asked step by step.", do="Use the sampled method.")
    if secret.source_format is not None:
        raise ModelError(
            "The secret stands in source and target, so each candidate has a source of its own.",
            do="Use the sampled method.",
        )
    return Space(stepper, secret.parsed, source=secret.source)


def _changed(
    found: Measured, value: float, low: float, high: float, *, rank: float, method: str, **more: float
) -> Measured:
    """The row with another exposure."""
    fields = {"exposure_bits": value, "lower": low, "upper": high, "rank": float(rank), "method": method, **more}
    assert math.isfinite(value)  # noqa: S101 - an exposure is a number of bits
    return Measured(**{**vars(found), **fields})
