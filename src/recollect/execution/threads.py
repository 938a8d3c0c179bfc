"""How many threads one process computes with: said in its environment, and to torch where it is already loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "RAYON_NUM_THREADS",
)


def divide_threads(workers: int) -> int:
    """Threads for each of several workers: the cores of this process, divided, and no more than the user allows.

    >>> divide_threads(workers=1_000_000)
    1
    """
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = max(1, cores // workers)
    return min(share, int(allowed)) if allowed.isdecimal() and int(allowed) > 0 else share


def describe_threads(threads: int) -> str:
    """A number of threads in words.

    >>> describe_threads(1), describe_threads(8)
    ('1 thread', '8 threads')
    """
    return f"{threads} thread{'s' * (threads > 1)}"


def thread_variables(threads: int) -> dict[str, str]:
    """The environment variables that give a process this many threads, if set before torch is loaded.

    >>> thread_variables(2)["OMP_NUM_THREADS"], thread_variables(1)["TOKENIZERS_PARALLELISM"]
    ('2', 'false')
    """
    return {**dict.fromkeys(_THREAD_VARIABLES, str(threads)), "TOKENIZERS_PARALLELISM": str(threads > 1).lower()}


@contextmanager
def set_environment(settings: Mapping[str, str]) -> Iterator[None]:
    """While this lasts, the environment also holds these settings; processes started meanwhile inherit them."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def use_threads(threads: int) -> Iterator[None]:
    """While this lasts, this process computes with so many threads."""
    # not imported: whoever runs no model should not wait for it
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else None
    with set_environment(thread_variables(threads)):
        if torch and before != threads:
            torch.set_num_threads(threads)
        try:
            yield
        finally:
            if torch and before != threads:
                torch.set_num_threads(before)
