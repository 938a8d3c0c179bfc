"""Write the report of a run folder, as HTML and as Markdown, whole or not at all, for its owner only."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from recollect.errors import PlanError
from recollect.files import write_text
from recollect.report.currency import compute_view_digest
from recollect.report.html import render_html
from recollect.report.markdown import render_markdown
from recollect.report.report import Report, build_report
from recollect.report.words import choose_naming
from recollect.results.run_folder import RunFolder
from recollect.results.run_manifest import refuse_changed_run, write_run_manifest

RENDERERS: dict[str, Callable[[Report], str]] = {".html": render_html, ".md": render_markdown}
"""How a report is written, by the ending of its file."""


def write_report(
    folder: Path,
    out: Path | None = None,
    *,
    show_text: bool | Collection[str] = False,
    real_names: bool = False,
    named: Collection[str] = (),
) -> Path:
    """Rebuild the report of a run folder from its results and tables, and tell where it is.

    Args:
        folder: The run folder, that `--out` named.
        out: The one file to write, `.html` or `.md`; None for `report.html` and `report.md` in the run folder, whose
            `manifest.json` is written then, too.
        show_text: Whether text from corpora is shown, where the run kept it; or of which audits.
        real_names: Whether people and records are shown by their own ids in place of pseudonyms.
        named: Who is shown by their own ids in any case.

    Raises:
        PlanError: The file has another ending.
        StoreError: The folder holds no results, or a result is damaged or newer, or was changed after the run.
    """
    run = RunFolder(folder)
    files = [run.report, run.report.with_suffix(".md")] if out is None else [out]
    if files[0].suffix not in RENDERERS:
        raise PlanError(
            f"{str(out)!r} is neither HTML nor Markdown.",
            do="Give a name that ends in .html or .md.",
            code="unknown_report_format",
        )
    refuse_changed_run(folder)
    naming = choose_naming(folder, real_names=real_names, named=named, keep=out is None)
    report = build_report(run, show_text=show_text, naming=naming)
    for file in files:
        write_text(file, RENDERERS[file.suffix](report))
    if out is None:
        shown = ["every audit"] if show_text is True else show_text or ()
        view = compute_view_digest(folder, shown=shown, real_names=real_names, named=named)
        write_run_manifest(folder, view)
    return files[0]
