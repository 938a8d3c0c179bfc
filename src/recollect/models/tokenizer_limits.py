"""Whether a tokenizer can be true, before it is used: its library ends the process when memory runs out."""

from __future__ import annotations

import json
from typing import Any, Final

from recollect.errors import ModelError

MAX_TOKEN_NUMBER: Final = 2**24
"""No vocabulary reaches so far; the library lists all numbers up to the largest, even if they are no tokens."""
MAX_GROWTH: Final = 10_000
"""How many characters a normaliser may write for one: those of real models write one or two."""


def refuse_absurd_tokenizer(tokenizer: Any, ref: str) -> None:
    """Refuse a tokenizer that would fill the memory of any machine.

    Args:
        tokenizer: A fast one.
        ref: How the user named the model.

    Raises:
        ModelError: Its token numbers are absurd, or its normaliser makes texts thousands of times longer.
    """
    largest = max(tokenizer.get_vocab().values(), default=0)
    if largest > MAX_TOKEN_NUMBER:
        raise _build_absurd_tokenizer_error(ref, f"it numbers a token {largest:,}")
    normaliser = tokenizer.backend_tokenizer.normalizer
    growth = 1 if normaliser is None else _compute_growth(json.loads(normaliser.__getstate__()))
    if growth > MAX_GROWTH:
        raise _build_absurd_tokenizer_error(ref, f"it writes {growth:,} characters for one")


def _compute_growth(normaliser: Any) -> int:
    """How many characters a normaliser may write for one: the product over its steps.

    >>> replace = {"type": "Replace", "pattern": {"String": " "}, "content": "xyz"}
    >>> _compute_growth({"type": "Sequence", "normalizers": [replace, replace]})
    9
    """
    growth = 1
    for each in normaliser.get("normalizers", ()):
        growth *= _compute_growth(each)
    return growth * max(1, len(normaliser.get("content", ""))) + len(normaliser.get("prepend", ""))


def _build_absurd_tokenizer_error(ref: str, found: str) -> ModelError:
    """Why such a tokenizer is not used."""
    return ModelError(
        f"The tokenizer of {ref!r} cannot be true: {found}.",
        do="Save the model's own tokenizer into its folder again.",
        code="absurd_tokenizer",
    )
