"""Where the data of a paper's studies lies, and where what was made of it is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from recollect.errors import CorpusError
from recollect.execution.backend import Backend
from recollect.pipeline.plans.backends import BackendRef


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What the studies of every paper share; a paper's laboratory adds its own."""

    data: Path
    work: Path
    threads: int = 1
    say: Callable[[str], None] = print
    backend: BackendRef = field(default_factory=BackendRef)
    """Where fleets are trained and models score; single trainings stay in this process."""

    @property
    def cluster(self) -> Backend | None:
        """The cluster, if one is named."""
        return None if self.backend.ray is None else self.backend.open(self.work, threads=self.threads)

    def file(self, name: str) -> str:
        """The path of a file of the data folder.

        Raises:
            CorpusError: It is not there.
        """
        path = self.data / name
        if not path.is_file():
            raise CorpusError(
                f"The data folder {self.data} has no {name}.",
                do="Name the folder that has it with --data or RECOLLECT_DATA; the README says what lies in it.",
            )
        return str(path)
