"""Where the data of a paper's studies lies, and where what was made of it is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.outcomes import Figure, rounded

from recollect.digests import Json, digest
from recollect.errors import CorpusError, RecollectError
from recollect.execution.backend import Backend
from recollect.files import read_json, write_text
from recollect.pipeline.plans.backends import BackendRef

PARTS = "parts"
"""The folder, below a paper's results, of what single trainings came to."""


class NotKeptError(RecollectError):
    """Something is not among the kept results."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What the studies of every paper share; a paper's laboratory adds its own."""

    data: Path
    work: Path
    threads: int = 1
    say: Callable[[str], None] = print
    backend: BackendRef = field(default_factory=BackendRef)
    """Where fleets are trained and models score; single trainings stay in this process."""
    results: Path | None = None
    """The paper's results, which are part of the repository; without it, a folder of the work folder."""
    only_kept: bool = False
    """Whether nothing may be made that is not kept."""

    def keep(self, study: str, part: str, made_of: Json, make: Callable[[], Any]) -> Any:
        """What one training or one cell of a study came to, made once and kept among the paper's results.

        Args:
            study: The study, or the name that several studies share.
            part: Which of its trainings or cells.
            made_of: All that it depends on; where that changes, it is made anew.
            make: Makes it: aggregates alone, as JSON has them.

        Raises:
            NotKeptError: It is not kept, and may not be made.
        """
        named = re.sub(r"[^\w=.]+", "-", part)
        file = (self.results or self.work / "results") / PARTS / study / f"{named}.json"
        address = digest(made_of)
        if file.exists() and (written := read_json(file))["made_of"] == address:
            return written["found"]
        if self.only_kept:
            raise NotKeptError(f"There is no {file.name} of {study} made as it would be now.")
        found = rounded(make())
        write_text(file, json.dumps({"made_of": address, "found": found}, ensure_ascii=False) + "\n")
        self.say(f"  {study}, {part}: kept")
        return found

    def keep_figures(self, study: str, part: str, made_of: Json, make: Callable[[], list[Figure]]) -> list[Figure]:
        """Figures of one training or one cell of a study, made once and kept as `keep` does."""
        rows = self.keep(study, part, made_of, lambda: [[each.what, each.paper, each.ours] for each in make()])
        return [Figure(*row) for row in rows]

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
