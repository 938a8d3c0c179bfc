"""Results: findings with interval, counts and method; their JSON Schema; run folders."""

from recollect.results.folders import RunFolder
from recollect.results.result import Failed, Finding, Note, Outcome, Provenance, Result, Skipped
from recollect.results.summary_rows import Row, build_summary_rows

__all__ = [
    "Failed",
    "Finding",
    "Note",
    "Outcome",
    "Provenance",
    "Result",
    "Row",
    "RunFolder",
    "Skipped",
    "build_summary_rows",
]
