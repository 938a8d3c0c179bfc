"""Results: findings with interval, counts and method; their JSON Schema; run folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy_exports import export_lazily

if TYPE_CHECKING:
    from recollect.results.result import Failed as Failed
    from recollect.results.result import Finding as Finding
    from recollect.results.result import Note as Note
    from recollect.results.result import Outcome as Outcome
    from recollect.results.result import Provenance as Provenance
    from recollect.results.result import Result as Result
    from recollect.results.result import Skipped as Skipped
    from recollect.results.run_folder import RunFolder as RunFolder
    from recollect.results.summary_rows import Row as Row
    from recollect.results.summary_rows import build_summary_rows as build_summary_rows

__getattr__, __all__ = export_lazily(
    __name__,
    {
        "run_folder": ["RunFolder"],
        "result": ["Failed", "Finding", "Note", "Outcome", "Provenance", "Result", "Skipped"],
        "summary_rows": ["Row", "build_summary_rows"],
    },
)
