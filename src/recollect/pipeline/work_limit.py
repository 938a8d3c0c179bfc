"""A limit on the size of the work folder: nothing is begun in one that has reached it, and scoring stops there."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from recollect.errors import StoreError
from recollect.pipeline.work_entries import compute_entry_size, format_size

GIGABYTE: Final = 1_000_000_000
LOOK_SECONDS: Final = 5.0
"""How often the folder is measured while a model scores."""


@dataclass(kw_only=True)
class WorkLimit:
    """How large a work folder may become; None for as large as the disk."""

    work: Path
    gigabytes: float | None
    measured: float = float("-inf")
    """When the folder was last measured."""

    def refuse_exceeded(self) -> None:
        """Refuse to go on in a work folder that has reached its limit.

        Raises:
            StoreError: It has; what is in it stays.
        """
        if self.gigabytes is None or not self.work.is_dir():
            return
        size = compute_entry_size(self.work)
        if size >= self.gigabytes * GIGABYTE:
            raise StoreError(
                f"The work folder '{self.work}' holds {format_size(size)}, and its limit is "
                f"{format_size(round(self.gigabytes * GIGABYTE))} (work_limit_gb).",
                do="See what no run needs any more (recollect clean), or raise the limit. What is there is kept.",
                code="work_limit_reached",
            )

    def watch(self, progress: Callable[[int, int, str], None]) -> Callable[[int, int, str], None]:
        """The same callback, which also measures the folder now and then, and stops the work at the limit."""

        def watched(done: int, total: int, note: str) -> None:
            progress(done, total, note)
            if done < total and time.monotonic() - self.measured >= LOOK_SECONDS:
                self.refuse_exceeded()
                self.measured = time.monotonic()

        return watched if self.gigabytes is not None else progress
