"""One family of errors: what was requested, what was found, what to do."""

from __future__ import annotations

import sys
import warnings
from typing import ClassVar, TextIO


class RecollectError(Exception):
    """Something could not be done as requested; the message says what to do instead.

    Args:
        found: What was requested and what was found, in one sentence.
        do: What the reader can do about it; printed on its own line.
        code: A stable snake_case name of the reason, for programs and tests; wording may change, codes do not.

    >>> error = RecollectError("The file 'a.jsonl' is empty.", do="Give a file with at least one record.", code="empty")
    >>> print(error)
    The file 'a.jsonl' is empty.
      Give a file with at least one record.
    >>> error.code
    'empty'
    """

    default_code: ClassVar[str] = "error"
    traceback: str = ""
    """Where an error that nobody foresaw happened, if this one stands for such; it may hold text of a corpus."""
    final: bool = False
    """Whether it is of no use to go on with other records: a budget is spent, or a server is down."""

    def __init__(self, found: str, *, do: str = "", code: str | None = None) -> None:
        super().__init__(found, do)
        self.found = found
        self.do = do
        self.code = self.default_code if code is None else code

    def __str__(self) -> str:
        return f"{self.found}\n  {self.do}" if self.do else self.found

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.found, self.do), vars(self))


def _rebuild(kind: type[RecollectError], found: str, do: str) -> RecollectError:
    """An error again after it travelled from a worker process; pickle then restores its attributes."""
    return kind(found, do=do)


class CorpusError(RecollectError):
    """A corpus cannot be read as requested."""

    default_code = "corpus"


class ModelError(RecollectError):
    """A model cannot be loaded or used as requested."""

    default_code = "model"


class AccessError(RecollectError):
    """An audit needs more than the model shows."""

    default_code = "access"


class PlanError(RecollectError):
    """A plan, recipe or option holds something that is not a setting."""

    default_code = "plan"


class StoreError(RecollectError):
    """An answer store or run folder is damaged or belongs to something else."""

    default_code = "store"


class NotEnoughData(RecollectError):  # noqa: N818 - it is a refusal, not a fault
    """The counts cannot support the number requested; the message says which would.

    Args:
        found: What was requested and what was found, in one sentence.
        do: What the reader can do about it; printed on its own line.
        code: A stable snake_case name of the reason.
        needed: The count that would support it, where more data of one kind is all that is missing.
    """

    default_code = "not_enough_data"

    def __init__(self, found: str, *, do: str = "", code: str | None = None, needed: int | None = None) -> None:
        super().__init__(found, do=do, code=code)
        self.needed = needed


class MissingDependency(RecollectError):  # noqa: N818 - reads as a sentence
    """An optional package is needed; the message gives the command that adds it."""

    default_code = "missing_dependency"


class UnexpectedError(RecollectError):
    """Something that nobody foresaw; its traceback is in a file that only its owner can read."""

    default_code = "unexpected"


class RecollectWarning(UserWarning):
    """Something a reader of the result ought to know, though the run continues."""


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print one of our warnings as errors are printed, without the place in the code; others as Python does."""
    ours = issubclass(category, RecollectWarning)
    text = f"recollect: {message}\n" if ours else warnings.formatwarning(message, category, filename, lineno, line)
    stream = file or sys.stderr
    if stream is not None:
        stream.write(text)
