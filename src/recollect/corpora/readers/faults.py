"""A fault: what is wrong with one record, and what its reader can do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recollect.errors import CorpusError

SKIP_ADVICE = "Correct the record, or skip bad ones with --skip-bad (skip_bad=True): they are counted and reported."
REASONS = {
    "bad_conversation": "not a conversation",
    "bad_csv_row": "not CSV",
    "bad_json_line": "not JSON",
    "bad_role": "a role that no chat template knows",
    "bad_time": "not a time",
    "duplicate_id": "duplicate id",
    "late_column": "a column that the first records do not have",
    "no_id": "no id",
    "no_label": "no label",
    "no_scored_turn": "a conversation without a turn that is scored",
    "no_text": "no text",
    "no_user": "no user",
    "not_an_object": "not a JSON object",
    "not_finite": "a number that is not finite",
    "not_utf8": "not UTF-8",
    "nul_character": "a NUL character",
    "ragged_row": "more or fewer cells than the header",
    "short_piece": "a piece of fewer words than the minimum",
    "wrong_type": "wrong type",
}
"""Why a record is dropped: the key under which it is counted, and the words in which it is shown."""


@dataclass(frozen=True)
class Fault:
    """Why a record cannot be used. Readers hand it on in place of the record; nobody drops one in silence."""

    reason: str
    """A key of `REASONS`: under it `Corpus.skipped` counts the record, and it is the code of the error."""
    found: str
    """What was found, as the end of a sentence that began with the file and line."""
    do: str = SKIP_ADVICE
    fatal: bool = False
    """Whether it stops the reading even where bad records are skipped."""

    def to_error(self, location: str) -> CorpusError:
        """The error that names the place: file and line, or file and row."""
        return CorpusError(f"{location}: {self.found}", do=self.do, code=self.reason)


def describe_reason(reason: str) -> str:
    """The reason of a fault as people read it; a reason that is not ours stays as it is.

    >>> describe_reason("bad_json_line")
    'not JSON'
    """
    return REASONS.get(reason, reason)


class FaultError(Exception):
    """Carries a fault from the depth of a check to where the record is put together."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


def describe_type(value: object) -> str:
    """What a value is, for the message of a fault: in words that give nothing away, for a corpus is private.

    >>> describe_type(3.5), describe_type(["a"]), describe_type(None)
    ('a number', 'a list', 'null')
    """
    kinds = {"bool": "a truth value", "int": "a number", "float": "a number", "str": "a string", "NoneType": "null"}
    name = type(value).__name__
    return kinds.get(name, f"a {name}")


def quote_excerpt(name: str, *, limit: int = 40) -> str:
    """The beginning of a name, such as that of a column, for the message of a fault, harmless in a terminal.

    >>> quote_excerpt("a" * 50)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'"
    """
    return ascii(name[:limit] + "…" if len(name) > limit else name).replace("\\u2026", "…")


def list_column_names(columns: Iterable[str]) -> str:
    """The columns that exist, for the message of a fault."""
    names = sorted(columns)
    shown = ", ".join(map(quote_excerpt, names[:20]))
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown or "no columns"
