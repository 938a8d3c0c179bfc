"""Reports: results as one HTML page and as Markdown; a view of what the run folder holds, without torch."""

from recollect.report.report_writer import write_report

__all__ = ["write_report"]
