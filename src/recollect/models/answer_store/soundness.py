"""Answers that contradict themselves are refused before they are kept: a number in a store is believed for years."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from recollect.errors import ModelError
from recollect.models.access import Access
from recollect.models.answers import Answers

_DIGEST = re.compile(r"[0-9a-f]{32}")
_Fault = tuple[str, str]
"""The code of a contradiction, and what it is in words."""
_ROUNDING = 1e-3
"""How far above 0 a log-probability may come to be by rounding."""


def refuse_unsound_answers(answers: Answers, access: Access, *, model: str) -> None:
    """Refuse unsound answers, which no model with this access could have given.

    Raises:
        ModelError: Something contradicts something; the message names it all, the code the first.
    """
    faults = [*_find_shape_faults(answers)] or [
        *_find_access_faults(answers, access),
        *_find_number_faults(answers, access),
        *_find_mass_faults(answers),
    ]
    if faults:
        raise ModelError(
            f"The answers of model {model!r} cannot be right: {'; '.join(message for _, message in faults)}.",
            do="This is a bug in the code that wraps the model (an adapter, or code of your own): see Answers.",
            code=faults[0][0],
        )


def _find_shape_faults(answers: Answers) -> Iterator[_Fault]:
    """Unsound answers: records, offsets and columns that do not belong together."""
    if any(not _DIGEST.fullmatch(record) for record in answers.records):
        yield "not_a_digest", "a record is not named by its digest"
    if len(set(answers.records)) != len(answers.records):
        yield "record_twice", "a record comes twice"
    offsets = answers.offsets
    if len(offsets) != len(answers.records) + 1 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        yield "offsets_misfit", "the offsets do not divide the rows among the records"
        return
    for name in (
        "pattern",
        "position",
        "start",
        "end",
        "known",
        "rank",
        "logprob",
        "entropy",
        "logprob_std",
        "kept_mass",
        "logits",
    ):
        column = getattr(answers, name)
        if column is not None and len(column) != offsets[-1]:
            yield "column_length", f"{name} has {len(column)} rows instead of {offsets[-1]}"


def _find_access_faults(answers: Answers, access: Access) -> Iterator[_Fault]:
    """Unsound answers: columns that the access does not show, or shows and are missing."""
    shown = {"logprob": access.logprob != "none", "entropy": access.distribution, "logprob_std": access.distribution}
    for name, due in shown.items():
        if (getattr(answers, name) is not None) != due:
            code, is_there = ("column_missing", "missing") if due else ("column_not_shown", "there")
            yield code, f"{name} is {is_there} though the model shows {access}"
    for name in ("kept_mass", "logits"):
        if getattr(answers, name) is not None and not access.distribution:
            yield "column_not_shown", f"{name} is there though the model shows {access}"


def _find_number_faults(answers: Answers, access: Access) -> Iterator[_Fault]:
    """Unsound answers: numbers outside their range."""
    highest = np.iinfo(np.int32).max if access.k is None else access.k
    if ((answers.rank < (access.k is None)) | (answers.rank > highest)).any():
        yield "rank_not_shown", f"a rank is outside what is shown ({access})"
    if (answers.end < answers.start).any():
        yield "token_ends_before_it_begins", "a token ends before it begins"
    if answers.logprob is not None:
        if (answers.logprob > _ROUNDING).any():
            yield "logprob_above_zero", "a log-probability is above 0"
        if access.logprob == "any" and np.isnan(answers.logprob).any():
            yield "logprob_missing", "a log-probability is missing though that of any token is shown"
    if answers.entropy is not None and answers.logprob_std is not None:
        both = np.concatenate([answers.entropy, answers.logprob_std])
        if not (both > -_ROUNDING).all():
            yield "entropy_negative", "an entropy or a logprob_std is negative or missing"


def _find_mass_faults(answers: Answers) -> Iterator[_Fault]:
    """Unsound answers: masses that no sampling could keep."""
    if answers.kept_mass is not None and not (answers.kept_mass > 0).all():
        yield "kept_mass_not_positive", "a mass that sampling keeps is not above 0"
