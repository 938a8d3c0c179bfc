"""Write the report of a run folder: `report.html` and `report.md`, whole or not at all, for their owner only."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import PlanError
from recollect.files import write_text
from recollect.report.html import html
from recollect.report.markdown import markdown
from recollect.report.report import gathered
from recollect.results.folders import RunFolder


def write_report(folder: Path, out: Path | None = None, *, show_text: bool = False) -> Path:
    """Rebuild the report of a run folder from its results and tables, and tell where the page is.

    Args:
        folder: The run folder, that `--out` named.
        out: The page, with the Markdown beside it; `report.html` in the run folder if None.
        show_text: Whether text from corpora is shown, where the run kept it.

    Raises:
        PlanError: The page would not be an HTML file.
        StoreError: The folder holds no results, or a result is damaged or newer.
    """
    run = RunFolder(folder)
    page = run.report if out is None else out
    if page.suffix not in (".html", ".htm"):
        raise PlanError(f"{str(page)!r} is no HTML file.", do="Give --out a name that ends in .html.")
    report = gathered(run, show_text=show_text)
    write_text(page, html(report))
    write_text(page.with_suffix(".md"), markdown(report))
    return page
