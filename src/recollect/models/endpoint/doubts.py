"""Why an answer is refused: servers that invent numbers do so with status 200."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from recollect.errors import ModelError

LOWEST: Final = -1000.0
"""No language model gives a token of a text so little; servers write such numbers where they have none."""
MAX_DISAGREEMENT: Final = 0.05
"""Nats by which the scores of a prompt and of the same tokens generated may differ."""
_ROUNDING: Final = 1e-3
_CONSTANT_FROM: Final = 8
"""So many different tokens never have the very same log-probability."""


def build_doubt(code: str, found: str) -> ModelError:
    """A refusal of answers that cannot be right; scoring on is of no use."""
    error = ModelError(
        f"The answers of the server cannot be trusted: {found}",
        do="No score is taken from them. Use another server program or version, or a weaker access (see the docs).",
        code=code,
    )
    error.final = True
    return error


def refuse_invented(logprobs: Sequence[float | None]) -> None:
    """Doubt and refuse numbers that no model computes: sentinels, numbers above 0, constants.

    Raises:
        ModelError: There are some.
    """
    shown = [value for value in logprobs if value is not None]
    for value in shown:
        if not math.isfinite(value) or value <= LOWEST or value > _ROUNDING:
            raise build_doubt("sentinel_logprob", f"a log-probability is {value:g}.")
    if len(shown) >= _CONSTANT_FROM and max(shown) - min(shown) < 1e-9:
        raise build_doubt("constant_logprobs", f"the log-probabilities of {len(shown)} tokens are all {shown[0]:g}.")


def refuse_disagreement(difference: float, noise_floor: float) -> None:
    """Doubt and refuse a server that scores tokens of a prompt otherwise than the same tokens generated.

    Raises:
        ModelError: They differ by more than rounding and the noise floor explain.
    """
    if difference > max(noise_floor, MAX_DISAGREEMENT):
        raise build_doubt(
            "prompt_scores_disagree",
            f"the scores of a prompt and of the same tokens generated differ by {difference:.3g} nats.",
        )


def read_number(value: object) -> float:
    """A log-probability as a server wrote it, unless there is doubt about it.

    Raises:
        ModelError: It is no number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise build_doubt("logprob_not_a_number", f"a log-probability is {type(value).__name__}, no number.")
    return float(value)
