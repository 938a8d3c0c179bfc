"""Reports: results as one HTML page and as Markdown; a view of what the run folder holds, without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy_exports import export_lazily

if TYPE_CHECKING:
    from recollect.report.report_writer import write_report as write_report

__getattr__, __all__ = export_lazily(
    __name__,
    {
        "report_writer": ["write_report"],
    },
)
