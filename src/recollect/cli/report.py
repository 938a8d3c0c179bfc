"""`recollect report`: the report of a run folder, built anew from its results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli import console
from recollect.cli.shared_options import Named, RealNames, ShowText


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The run folder (--out of the run).")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An .html or .md file. (default: both in the run folder)"),
    ] = None,
    show_text: ShowText = False,
    real_names: RealNames = False,
    named: Named = None,
    model_card: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Instead of a report, write outcomes and key numbers into this model card (README.md).",
        ),
    ] = None,
) -> None:
    """Rebuild the report of a run: one HTML page for people, and Markdown for pull requests.

    It uses only the results and tables in the run folder: no model is loaded, nothing is scored or downloaded. Text
    from corpora is masked; --show-text shows it, if the run kept it (that is, was run with --show-text). Users and
    records have pseudonyms, the same in all reports of a run folder; --name and --real-names show their own ids.

    `recollect report run`
    """
    if model_card is not None:
        from recollect.report.model_card_section import update_model_card
        from recollect.results.run_folder import RunFolder

        update_model_card(RunFolder(folder).read_results().values(), model_card)
        console.say(f"The model card is {model_card}.")
        return
    from recollect.report.report_writer import write_report

    written = write_report(folder, out, show_text=show_text, real_names=real_names, named=named or ())
    console.say(f"The report is in {written}.")
