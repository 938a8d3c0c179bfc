"""A fault: what is wrong with one record, and what its reader can do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recollect.errors import CorpusError

SKIP = "Correct the record, or skip bad ones with --skip-bad (skip_bad=True): they are counted and reported."


@dataclass(frozen=True)
class Fault:
    """Why a record cannot be used. Readers hand it on in place of the record; nobody drops one in silence."""

    reason: str
    """The heading under which `Corpus.skipped` counts it, such as "not JSON"."""
    found: str
    """What was found, as the end of a sentence that began with the file and line."""
    do: str = SKIP
    fatal: bool = False
    """Whether it stops the reading even where bad records are skipped."""

    def error(self, place: str) -> CorpusError:
        """The error that names the place: file and line, or file and row."""
        return CorpusError(f"{place}: {self.found}", do=self.do)


class FaultError(Exception):
    """Carries a fault from the depth of a check to where the record is put together."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


def excerpt(value: object, *, limit: int = 40) -> str:
    """A short, harmless picture of a value for an error message.

    >>> excerpt("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'"
    """
    text = value if isinstance(value, str) else repr(value)[: limit + 1]
    return ascii(text[:limit] + "…" if len(text) > limit else text).replace("\\u2026", "…")


def named(columns: Iterable[str]) -> str:
    """The columns that exist, for an error message."""
    names = sorted(columns)
    shown = ", ".join(map(excerpt, names[:20]))
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown or "no columns"
