"""`recollect compare`: two runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli import console
from recollect.cli.shared_options import AsJson

Before = Annotated[Path, typer.Argument(metavar="RUN_A", help="The run folder before.", show_default=False)]
After = Annotated[Path, typer.Argument(metavar="RUN_B", help="The run folder after.", show_default=False)]


def compare(
    before: Before,
    after: After,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the comparison as an HTML page.")] = None,
    json: AsJson = False,
) -> None:
    """Compare two runs side by side: before and after differential privacy, sanitising, or a removal.

    Shows every finding that both runs have, with an interval of the difference if both have intervals.

    `recollect compare run-before run-after --out compared.html`
    """
    from dataclasses import asdict

    from recollect.files import write_text
    from recollect.report.comparison_page import (
        HEADINGS,
        build_comparison_headline,
        build_comparison_rows,
        render_comparison_page,
    )
    from recollect.results.comparison import compare_runs
    from recollect.results.run_folder import RunFolder

    found = compare_runs(RunFolder(before).read_results(), RunFolder(after).read_results())
    if json:
        document = [{**asdict(each), "difference": each.value, "differs": each.differs} for each in found.differences]
        console.print_json({**asdict(found), "differences": document})
    else:
        console.print_table(build_comparison_headline(found), list(HEADINGS), build_comparison_rows(found))
        for line in (*found.notes, *found.missing):
            console.say(f"Note: {line}")
    if out is not None:
        write_text(out, render_comparison_page(found, (str(before), str(after))))
        console.say(f"The comparison is in {out}.")
