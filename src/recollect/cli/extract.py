"""`recollect extract`: draw the likeliest secrets of a format out of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.cli import console
from recollect.cli.auditing import RunOptions, planned, run_audit
from recollect.cli.options import ModelName, QuestionOptions, ShowText

if TYPE_CHECKING:
    from recollect.results.result import Result


def extract(
    model: ModelName,
    asking: QuestionOptions,
    running: RunOptions,
    format: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORMAT", help="What secrets look like: 'my pin is {digits:6}'.", show_default=False
        ),
    ],
    method: Annotated[
        Literal["shortest-path", "beam", "sampling", "brute-force"],
        typer.Option(help="Only shortest-path proves that its list is the likeliest."),
    ] = "shortest-path",
    top: Annotated[int, typer.Option(help="How many secrets are wanted.")] = 20,
    max_steps: Annotated[int, typer.Option(help="Steps of the model that the search may take.")] = 100_000,
    width: Annotated[int, typer.Option(help="Beginnings that a beam keeps.")] = 100,
    source: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Encoder–decoders: the source of which it is the target.")
    ] = None,
    show_text: ShowText = False,
) -> None:
    """Draw the likeliest secrets of a known format out of a model.

    The default goes on until nothing that was not looked at can be likelier than what is listed, so that the list is
    proven; if the steps run out first, it says how much of it is.

    `recollect extract my-model --format 'my pin is {digits:6}' --show-text`
    """
    from recollect.audits.exposure.extraction import ExtractionAudit
    from recollect.signals.evidence import TARGET

    audit = ExtractionAudit(
        format=format, method=method, top=top, max_steps=max_steps, width=width, source=source, show_text=show_text
    )
    run_audit(planned(audit, models={TARGET: model}, asking=asking, running=running), running, more=_show_secrets)


def _show_secrets(result: Result) -> None:
    """The list."""
    rows = [
        [f"{row['place']}", row["secret"], f"{row['log_perplexity_bits']:.2f}", "yes" if row["proven"] else "no"]
        for row in result.held["secrets"].to_pylist()
    ]
    console.print_table("The likeliest secrets", ["place", "text", "log-perplexity (bits)", "proven"], rows)
