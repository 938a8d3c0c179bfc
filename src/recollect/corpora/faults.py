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


def kind_of(value: object) -> str:
    """What a value is, in words that give nothing of it away: what a corpus holds is private.

    >>> kind_of(3.5), kind_of(["a"]), kind_of(None)
    ('a number', 'a list', 'null')
    """
    kinds = {"bool": "a truth value", "int": "a number", "float": "a number", "str": "a string", "NoneType": "null"}
    name = type(value).__name__
    return kinds.get(name, f"a {name}")


def excerpt(name: str, *, limit: int = 40) -> str:
    """The beginning of a name, such as that of a column, harmless in a terminal.

    >>> excerpt("a" * 50)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'"
    """
    return ascii(name[:limit] + "…" if len(name) > limit else name).replace("\\u2026", "…")


def named(columns: Iterable[str]) -> str:
    """The columns that exist, for an error message."""
    names = sorted(columns)
    shown = ", ".join(map(excerpt, names[:20]))
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown or "no columns"
