"""What was found, in words that a lawyer can read, and what else a reader ought to know."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from recollect.audits.leakage.measuring import Leak, Read
from recollect.audits.leakage.null import Compared
from recollect.results.result import Note


@dataclass(frozen=True, kw_only=True)
class Told:
    """What else a reader is told."""

    read: Read
    way: str
    """How the references came about, in sentences; empty if there are none."""
    reason: str
    """Why there is no leakage epsilon; empty if there is."""
    by_record: bool
    """Whether the corpus has no users, so that every record counts as one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """What the judgement comes down to."""

    leaked: Mapping[int, Leak]
    """The sequences of one user that the model says."""
    compared: Compared
    flagged: frozenset[str]
    found: bool
    cannot: bool
    """Whether no comparison was possible."""


def verdict(judged: Judged) -> str:
    """One or two sentences."""
    compared, flagged = judged.compared, judged.flagged
    if judged.cannot:
        return f"{_said(judged)}; whether its training on them explains it could not be tested."
    if not judged.found:
        return f"{_said(judged)}; no more is given away of them than of users whom it has not seen."
    if flagged:
        theirs = _up_to(leak for leak in judged.leaked.values() if leak.user in flagged)
        chance = _up_to(compared.null.values()).removeprefix("ε_l ")
        beside = f" ({theirs}{f'; by chance {chance}' if chance else ''})" if theirs else ""
        return (
            f"{len(flagged):,} of {len(compared.users):,} users have sequences that only the model's training on them "
            f"explains{beside}. {_said(judged)}."
        )
    return f"More is given away of its users than chance explains, though no single user can be named. {_said(judged)}."


def _said(judged: Judged) -> str:
    """How many sequences come out, and of how many users."""
    count, people = len(judged.leaked), len({leak.user for leak in judged.leaked.values()})
    if not count:
        return "No sequence that only one user wrote comes out of the model"
    top = "" if judged.flagged else _up_to(judged.leaked.values())
    come = "sequences that only one user wrote come" if count > 1 else "sequence that only one user wrote comes"
    return f"{count:,} {come} out of the model, of {people:,} user{'s' * (people > 1)}{f' ({top})' if top else ''}"


def _up_to(leaks: Iterable[Leak]) -> str:
    """The largest epsilon in words; empty if there is none."""
    epsilons = [leak.epsilon for leak in leaks if not math.isnan(leak.epsilon)]
    return f"ε_l up to {max(epsilons):.1f}" if epsilons else ""


def notes(judged: Judged, told: Told, *, level: float, everybody: int) -> tuple[Note, ...]:
    """What a reader ought to know.

    Args:
        judged: What the judgement comes down to.
        told: What else is told.
        level: Up to which corrected p-value a user is flagged.
        everybody: How many users the audited corpus has.
    """
    compared, seen = judged.compared, everybody - len(judged.compared.users)
    said = list[Note]()
    if seen:
        said.append(Note(code="users_seen_by_reference", text=f"{seen} users are left out: a reference has seen them."))
    if told.by_record:
        text = "The corpus has no users: every record counts as a user of its own (see --user-column)."
        said.append(Note(code="no_users", text=text))
    if told.way:
        said.append(Note(code="references", text=told.way))
    if told.read.unknown:
        text = (
            f"{told.read.unknown:,} of {told.read.words:,} words are unknown to the model (<unk>): it cannot say them, "
            "and each ends a sequence."
        )
        said.append(Note(code="unknown_words", text=text))
    together = math.ceil(len(compared.users) / max(1, (len(compared.null_users) + 1) * level))
    if compared.null_users and together > 1:
        text = (
            f"With {len(compared.null_users)} users who were not seen, users can be flagged only if at least "
            f"{together} of {len(compared.users)} stand out together; more --controls see fewer."
        )
        said.append(Note(code="too_few_controls_to_name", text=text))
    return tuple(said)
