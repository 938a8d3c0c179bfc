"""One family of errors: what was asked, what was found, what to do."""

from __future__ import annotations


class RecollectError(Exception):
    """Something could not be done as asked; the message says what to do instead.

    Args:
        found: What was asked and what was found, in one sentence.
        do: What the reader can do about it; printed on its own line.

    >>> print(RecollectError("The file 'a.jsonl' is empty.", do="Give a file with at least one record."))
    The file 'a.jsonl' is empty.
      Give a file with at least one record.
    """

    def __init__(self, found: str, *, do: str = "") -> None:
        super().__init__(found, do)
        self.found = found
        self.do = do

    def __str__(self) -> str:
        return f"{self.found}\n  {self.do}" if self.do else self.found

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.found, self.do))


def _rebuild(kind: type[RecollectError], found: str, do: str) -> RecollectError:
    """An error again after it travelled from a worker process."""
    return kind(found, do=do)


class CorpusError(RecollectError):
    """A corpus cannot be read as asked."""


class ModelError(RecollectError):
    """A model cannot be loaded or questioned as asked."""


class AccessError(RecollectError):
    """An audit needs more than the model shows."""


class PlanError(RecollectError):
    """A plan, recipe or option holds something that is not a setting."""


class StoreError(RecollectError):
    """An answer store or run folder is damaged or belongs to something else."""


class NotEnoughData(RecollectError):  # noqa: N818 - it is a refusal, not a fault
    """The counts cannot support the number asked for; the message says which would."""


class MissingDependency(RecollectError):  # noqa: N818 - reads as a sentence
    """An optional package is needed; the message gives the command that adds it."""


class RecollectWarning(UserWarning):
    """Something a reader of the result ought to know, though the run goes on."""
