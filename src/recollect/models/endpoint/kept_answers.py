"""Answers of a server, kept as they arrive; those that no repeated probe has vouched for can be taken back."""

from __future__ import annotations

import json
import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

from recollect.files import Journal

_KEY_BYTES: Final = 16
_CONFIRMED: Final = b"confirmed"
_OPEN: weakref.WeakValueDictionary[Path, KeptAnswers] = weakref.WeakValueDictionary()
"""Those of this process."""


class KeptAnswers:
    """What one generation of a model answered, by the digest of the request."""

    def __init__(self, path: Path, owner: str) -> None:
        """Open the journal, for this process alone.

        Args:
            path: Its file.
            owner: The address of the model and its generation.

        Raises:
            StoreError: Another run uses it, or it is damaged.
        """
        stack = ExitStack()
        self._journal = stack.enter_context(Journal.open(path, owner=owner, flush_seconds=30.0))
        self._answers: dict[bytes, bytes] = {}
        self._entries = self._confirmed = 0
        """Entries in all, and up to the last one that was confirmed."""
        self._doubtful: list[bytes] = []
        for entry in self._journal:
            self._apply(entry)
        self._close = weakref.finalize(self, stack.close)

    @classmethod
    def share(cls, path: Path, owner: str) -> Self:
        """The answers in a file; those that are open in this process, if they are: a journal has one writer."""
        place = path.resolve()
        found = _OPEN.get(place)
        if found is None:
            found = _OPEN[place] = cls(path, owner)
        assert isinstance(found, cls)  # noqa: S101 - only these are kept there
        return found

    def __contains__(self, key: str) -> bool:
        return bytes.fromhex(key) in self._answers

    def get(self, key: str) -> Any:
        """The answer to a request."""
        return json.loads(self._answers[bytes.fromhex(key)])

    def put(self, key: str, answer: Any) -> None:
        """Keep an answer; it survives a kill from here on."""
        entry = bytes.fromhex(key) + json.dumps(answer, separators=(",", ":")).encode()
        self._journal.append(entry)
        self._apply(entry)

    @property
    def doubtful(self) -> int:
        """How many answers have arrived since the last probe that agreed."""
        return len(self._doubtful)

    def confirm(self) -> None:
        """All answers so far are of the same model: a probe after them agreed."""
        if self._doubtful:
            self._journal.append(_CONFIRMED)
            self._apply(_CONFIRMED)

    def drop_doubtful(self) -> None:
        """Forget the answers since the last probe that agreed: the model may have changed before any of them."""
        self._journal.keep_first(self._confirmed)
        self._entries = self._confirmed
        for key in self._doubtful:
            self._answers.pop(key, None)
        self._doubtful.clear()

    def _apply(self, entry: bytes) -> None:
        """Take an entry into account."""
        self._entries += 1
        if entry == _CONFIRMED:
            self._confirmed = self._entries
            self._doubtful.clear()
            return
        key = entry[:_KEY_BYTES]
        self._answers[key] = entry[_KEY_BYTES:]
        self._doubtful.append(key)
