r"""Text as it may be written to a terminal: control characters are spelt out, and a line stays a line.

Names of users, files, models and settings come from others. Sent to a terminal as they are, they could move its
cursor, hide what was written before, set its title or type commands into it; bidirectional overrides could reverse
what is read. Whatever this package writes to standard output or standard error passes through here.
"""

from __future__ import annotations

import io
import re
from typing import TextIO

_HIDDEN = re.compile(r"[^ -~\n]")
"""What is looked at closely: all but the printable ASCII characters and line breaks."""
_BROKEN_OUT = re.compile(r"\n(?! {2})(?=.)")


def escape_controls(text: str) -> str:
    r"""The text with everything spelt out that is not printed as itself; line breaks stay.

    >>> print(escape_controls("ann\x1b[2J \u202ebob\x9b"))
    ann\x1b[2J \u202ebob\x9b
    >>> escape_controls("schön 🦜") == "schön 🦜"
    True
    """
    return _HIDDEN.sub(lambda found: _spell(found[0]), text)


def escape_line(text: str) -> str:
    r"""The text as one printable line: line breaks are spelt out, too.

    >>> print(escape_line("ann\nrecollect: all is well"))
    ann\nrecollect: all is well
    """
    return escape_controls(text).replace("\n", "\\n")


def escape_message(text: str) -> str:
    r"""A printable message of one or more lines: those after the first are indented.

    >>> print(escape_message("No user 'ann\nrecollect: all is well'.\n  Check the name."))
    No user 'ann
      recollect: all is well'.
      Check the name.
    """
    return _BROKEN_OUT.sub("\n  ", escape_controls(text))


def escape_json(document: str) -> str:
    r"""A printable JSON document: characters that a terminal would obey are escapes of JSON.

    >>> import json
    >>> print(escape_json(json.dumps("ann\x9b2J", ensure_ascii=False)))
    "ann\u009b2J"
    """
    return _HIDDEN.sub(lambda found: found[0] if _is_shown(found[0]) else _spell_for_json(found[0]), document)


class PrintableStream(io.TextIOBase):
    """A stream for what libraries write: it escapes control characters, and says that it is no terminal."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.terminal = stream
        """The stream itself, for those who draw on it."""

    def write(self, text: str) -> int:
        """Write the text, control characters spelt out; a carriage return, which redraws a line, ends it."""
        self.terminal.write(escape_controls(re.sub("\r+\n?", "\n", text)))
        return len(text)

    def flush(self) -> None:
        """Write out what is held back."""
        self.terminal.flush()

    def fileno(self) -> int:
        """The number of the file, for processes that are started."""
        return self.terminal.fileno()

    def writable(self) -> bool:
        """It can be written to."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """How characters become bytes."""
        return self.terminal.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """What is done with characters that have no bytes."""
        return self.terminal.errors


def _is_shown(character: str) -> bool:
    """Whether a terminal prints it, and does nothing else."""
    return character.isprintable() or (
        character.isspace() and character not in "\t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"
    )


def _spell(character: str) -> str:
    """A character as an escape, unless a terminal prints it as it is."""
    return character if _is_shown(character) else ascii(character)[1:-1]


def _spell_for_json(character: str) -> str:
    """A character as a printable escape of JSON."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
