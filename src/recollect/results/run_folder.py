"""The run folder: plan, cohorts, results and tables of one run, readable by their owner only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from recollect.checks import check_names
from recollect.errors import StoreError
from recollect.files import make_private_folder, write_atomically, write_json
from recollect.files.arrow_tables import read_parquet
from recollect.results.result import Result
from recollect.results.result_schema import read_result_file
from recollect.results.run_manifest import refuse_changed_file, remove_run_manifest

EXPOSURE_HISTORY = "exposure-by-epoch.json"
"""The exposures of each epoch, beside a model or in a run folder."""


@dataclass(frozen=True)
class RunFolder:
    """Where a run is kept. It repeats the reading line, so that every stage can be repeated from disk."""

    path: Path

    @property
    def plan(self) -> Path:
        """What was requested."""
        return self.path / "plan.yaml"

    @property
    def cohorts(self) -> Path:
        """Which users or records each model was trained on."""
        return self.path / "cohorts.json"

    @property
    def results(self) -> Path:
        """One JSON file per audit."""
        return self.path / "results"

    @property
    def report(self) -> Path:
        """The report for people."""
        return self.path / "report.html"

    def get_result_path(self, audit: str) -> Path:
        """Where the result of an audit is kept."""
        check_names("audit", [audit])
        return self.results / f"{audit}.json"

    def get_cohorts_path(self, role: str) -> Path:
        """Where the cohorts of the corpus in a role other than the audited one are kept."""
        check_names("role", [role])
        return self.path / f"cohorts-{role}.json"

    def write_result(self, result: Result) -> Path:
        """Save a result and its tables, whole or not at all; what an earlier run of this audit left goes away.

        The same result gives the same bytes.

        Raises:
            StoreError: The result does not say what it came from, or a table is missing.
        """
        self._refuse_unfinished(result)
        remove_run_manifest(self.path)
        path = self.get_result_path(result.audit)
        make_private_folder(path.parent)
        # The JSON goes first and comes last: tables without it are nobody's, and it never speaks of another's tables.
        path.unlink(missing_ok=True)
        for name, table in result.tables_in_memory.items():
            with write_atomically(self.path / result.tables[name]) as temporary:
                pq.write_table(table, temporary, compression="zstd")
        write_json(path, result.model_dump(mode="json"))
        self._tidy(result)
        return path

    def read_result(self, audit: str) -> Result:
        """The result of an audit.

        Raises:
            StoreError: It is absent, damaged, changed, or written by a newer version.
        """
        refuse_changed_file(self.path, self.get_result_path(audit))
        found = read_result_file(self.get_result_path(audit))
        if found.audit != audit:
            raise StoreError(
                f"{str(self.get_result_path(audit))!r} holds a result of the {found.audit} audit.",
                do="Run the audit again.",
                code="other_audit",
            )
        return found

    def read_results(self) -> dict[str, Result]:
        """All results of the run, by audit, in alphabetical order.

        Raises:
            StoreError: There is no run here, or a result is damaged or newer.
        """
        if not self.results.is_dir():
            raise StoreError(
                f"{str(self.path)!r} holds no results.", do="Give the folder that `--out` named.", code="no_results"
            )
        return {path.stem: self.read_result(path.stem) for path in sorted(self.results.glob("[!.]*.json"))}

    def read_table(self, result: Result, name: str) -> pa.Table:
        """A table of a result, from memory or from the folder.

        Raises:
            StoreError: There is no such table, or it is damaged or changed.
        """
        if name in result.tables_in_memory:
            return result.tables_in_memory[name]
        if name not in result.tables:
            known = ", ".join(result.tables) or "none"
            raise StoreError(
                f"The {result.audit} result has no table {name!r}.", do=f"Its tables: {known}.", code="no_such_table"
            )
        path = self.path / result.tables[name]
        refuse_changed_file(self.path, path)
        try:
            return read_parquet(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise StoreError(
                f"{str(path)!r} cannot be read: {error}.", do="Run the audit again.", code="damaged_table"
            ) from error

    def _refuse_unfinished(self, result: Result) -> None:
        """A result is saved only if it can be read on its own."""
        if result.provenance is None:
            raise StoreError(
                f"The {result.audit} result does not say what it came from.",
                do="Give it a provenance.",
                code="no_provenance",
            )
        for name, path in result.tables.items():
            if name not in result.tables_in_memory and not (self.path / path).is_file():
                raise StoreError(
                    f"The table {name!r} of the {result.audit} result is missing.",
                    do="Give it with it.",
                    code="missing_table",
                )

    def _tidy(self, result: Result) -> None:
        """Take away tables that an earlier result of this audit left behind."""
        kept = {self.path / table_path for table_path in result.tables.values()}
        for path in (self.path / "tables" / result.audit).glob("*.parquet"):
            if path not in kept:
                path.unlink()
