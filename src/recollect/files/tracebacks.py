"""What nobody foresaw: one message without private text, and a file with the traceback that only its owner can read."""

from __future__ import annotations

import secrets
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from recollect.errors import RecollectError, StoreError, UnexpectedError
from recollect.files.atomic_writes import write_text


def is_interruption(error: BaseException) -> bool:
    """Whether an error is the user's wish to stop, of which no traceback is saved and which is never a result."""
    return isinstance(error, KeyboardInterrupt | GeneratorExit)


def describe_fault(error: BaseException, folders: Iterable[Path]) -> RecollectError:
    """Any error as one of ours; where nobody foresaw it, its traceback is written to the first folder that takes it.

    What an unforeseen error says of itself may hold text of a corpus: it stands in that file alone.

    Args:
        error: What was raised, panics of native libraries included.
        folders: Where the traceback may go; a folder that is missing is passed over.
    """
    if isinstance(error, RecollectError):
        if not error.traceback:
            return error
        do = f"{error.do} {_save_traceback(error.traceback, folders)}".strip()
        return RecollectError(error.found, do=do, code=error.code)
    if isinstance(error, OSError):
        found = f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
        return RecollectError(found, code="system_error")
    saved = _save_traceback("".join(traceback.format_exception(error)), folders)
    if isinstance(error, MemoryError):
        do = f"Use fewer workers, or give it a smaller corpus or model. {saved}"
        return UnexpectedError("The memory of this machine ran out.", do=do, code="out_of_memory")
    return UnexpectedError(
        f"An error ended this that nobody foresaw ({type(error).__name__}).", do=saved, code="unexpected"
    )


def _save_traceback(text: str, folders: Iterable[Path]) -> str:
    """Write a traceback; the sentence that says where it is."""
    name = f"traceback-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(3)}.txt"
    for folder in folders:
        with suppress(OSError, StoreError):
            if folder.is_dir():
                write_text(folder / name, text)
                return (
                    f"The traceback is in '{folder / name}', which only you can read. If you report it, look first: "
                    "it may hold text of your data."
                )
    return "Its traceback could not be written to any folder."
