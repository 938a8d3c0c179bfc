"""Work for the tests of backends, in a module of its own because worker processes import it."""

from __future__ import annotations

import os
import signal
import time
import uuid
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recollect.errors import ModelError


class UnportableError(Exception):
    """Pickles, but cannot be built again from its message alone."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class NeedsTheKey:
    """Work that can be sent but not received."""

    def __reduce__(self):
        return (_locked, ())


def _locked():
    raise ModelError("There is no key here.", code="no_key")


def troubled(item):
    """Fails in a different way for every kind of item."""
    if item == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "leaves":
        os._exit(7)
    if item == "refuses":
        raise ModelError("This item is refused.", do="Take another.", code="refused")
    if item == "confuses":
        raise UnportableError(1, 2)
    if item == "hoards":
        return lambda: None
    if item == "ends":
        raise EOFError("a file that was cut off")
    return f"{item}!"


@dataclass(frozen=True)
class Loads:
    """Work that holds on to something dear, as to a loaded model."""

    name: str

    @cached_property
    def loaded(self):
        return f"{self.name} {uuid.uuid4()}"

    def __call__(self, item):
        return self.loaded


def slow_first(item):
    time.sleep(0.3 if item == 0 else 0)
    return item


def who(item):
    return os.getpid()


def surroundings(item):
    import torch  # imported here, as a model would

    return os.environ["OMP_NUM_THREADS"], torch.get_num_threads(), os.environ["TOKENIZERS_PARALLELISM"]


def dies_at_first(path):
    """End the process the first time, as a machine short of memory does; do the work the second time."""
    mark = Path(path)
    if mark.name in "bd" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return path


def note_slowly(path):
    """Take a moment, and add a line to a file."""
    time.sleep(0.3)
    with Path(path).open("a") as lines:
        lines.write("done\n")
    return path
