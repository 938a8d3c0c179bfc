"""Standard output and standard error as they are found: closed, without a reader, or unable to write some letters."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO

from recollect.cli.exit_status import COULD_NOT


def repair_streams() -> None:
    """Give the command streams that it can write to.

    A stream that was closed leads nowhere; letters that a terminal cannot show are written as escapes.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def flush_streams(output: TextIO, messages: TextIO, *, status: int) -> int:
    """Write out what is still held back; the status, which is 2 if the output did not reach its reader."""
    for stream in (output, messages):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = COULD_NOT if stream is output else status
            with suppress(OSError, ValueError):  # else the interpreter tries once more when it ends, and complains
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return status
