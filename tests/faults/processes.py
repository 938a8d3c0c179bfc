"""Commands in processes that are forked from this one, so that nothing slow is imported again, and how they end."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet  # noqa: F401 - what is slow to import
import torch  # noqa: F401
import transformers  # noqa: F401

import recollect.cli.app

SETTINGS = {"units": 8, "embedding": 8, "dropout": 0.0, "epochs": 3, "batch_size": 8, "tokenizer.size": 200}
"""Of the recipe of every model that is trained here."""
HUNG = "hung"


@dataclass
class Ended:
    """A command that has ended, or was ended."""

    status: int | str
    output: bytes

    @property
    def said(self) -> str:
        """Standard output and error."""
        return self.output.decode("utf-8", "replace")


@dataclass
class Started:
    """A command that runs."""

    process: int
    reader: threading.Thread
    output: list[bytes]

    def wait(self, seconds: float = 300.0) -> Ended:
        """Wait for its end; whoever takes longer is killed."""
        until, status = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            found, status = os.waitpid(self.process, os.WNOHANG)
            if found:
                return Ended(os.waitstatus_to_exitcode(status), self._read())
            time.sleep(0.01)
        self.kill()
        return Ended(HUNG, self._read())

    def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)

    def _read(self) -> bytes:
        self.reader.join(10)
        return b"".join(self.output)


def start(
    words: list[str],
    folder: Path,
    *,
    limits: dict[int, int] | None = None,
    prepare: Callable[[], object] = lambda: None,
) -> Started:
    """Start a command in a folder; with limits of `resource`, and after something was called in its process."""
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        output: list[bytes] = []
        reader = threading.Thread(target=_listen, args=(read, output), daemon=True)
        reader.start()
        return Started(child, reader, output)
    status = 70
    try:
        os.dup2(write, 1)
        os.dup2(write, 2)
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["recollect", *words]
        for name, value in (limits or {}).items():
            resource.setrlimit(name, (value, value))
        warnings.simplefilter("default")  # a command of a user knows nothing of pytest, which makes errors of warnings
        prepare()
        recollect.cli.main()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 2
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 1  # as Python itself ends
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _listen(read: int, output: list[bytes]) -> None:
    """Take what a command writes, as it comes."""
    with os.fdopen(read, "rb", buffering=0) as stream:
        output.extend(iter(lambda: stream.read(65536), b""))


def run(words: list[str], folder: Path, *, seconds: float = 300.0, **given: Any) -> Ended:
    """Run a command to its end."""
    return start([str(word) for word in words], folder, **given).wait(seconds)
