"""`recollect exposure`: how deep secrets of a known format sit in a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.cli import console
from recollect.cli.auditing import RunOptions, planned, run_audit
from recollect.cli.options import CorpusOptions, ModelName, QuestionOptions, ShowText

if TYPE_CHECKING:
    from recollect.results.result import Result

MOST_ROWS = 30
"""Secrets that are listed in a terminal; the table in the run folder has all."""
_WHICH = "Which secrets"


def exposure(
    model: ModelName,
    reading: CorpusOptions,
    asking: QuestionOptions,
    running: RunOptions,
    canaries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The .canaries.json of `recollect plant`.", rich_help_panel=_WHICH),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="What secrets look like: 'my pin is {digits:6}'.",
            rich_help_panel=_WHICH,
        ),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A secret of that format; may be repeated.", rich_help_panel=_WHICH),
    ] = None,
    find_in: Annotated[
        str | None,
        typer.Option(metavar="CORPUS", help="Look for secrets of that format in this corpus.", rich_help_panel=_WHICH),
    ] = None,
    context: Annotated[
        int, typer.Option(help="Found secrets: characters before each that are known.", rich_help_panel=_WHICH)
    ] = 50,
    most: Annotated[int, typer.Option(help="Found secrets: how many are measured.", rich_help_panel=_WHICH)] = 100,
    method: Annotated[
        Literal["auto", "exact", "sampled", "skew-normal"],
        typer.Option(help="auto: sampled, and exact where sampling cannot see. skew-normal: the paper's."),
    ] = "auto",
    draws: Annotated[int, typer.Option(help="Random secrets of each format to compare with.")] = 4096,
    max_steps: Annotated[int, typer.Option(help="Steps of the model that counting one secret may take.")] = 100_000,
    show_text: ShowText = False,
) -> None:
    """Measure how deep secrets of a known format sit in a model: exposure, in bits.

    A secret of exposure 20 is found 2^20 times sooner than by trying at random. Secrets come from a manifest
    (--canaries), from you (--format and --secret), or from a corpus (--format and --find-in).

    `recollect exposure my-model --canaries planted.canaries.json --out run`
    """
    from recollect.audits.exposure.audit import ExposureAudit
    from recollect.audits.exposure.view import CANARIES
    from recollect.signals.evidence import AUDITED, TARGET

    audit = ExposureAudit(
        format=format,
        secrets=tuple(secret or ()),
        context=context,
        most=most,
        method=method,
        draws=draws,
        max_steps=max_steps,
        show_text=show_text,
    )
    plan = planned(
        audit,
        models={TARGET: model},
        corpora={AUDITED: find_in},
        reading=reading,
        files={CANARIES: canaries},
        asking=asking,
        running=running,
    )
    run_audit(plan, running, more=_show_secrets)


def _show_secrets(result: Result) -> None:
    """The most exposed secrets."""
    rows = sorted(result.held["secrets"].to_pylist(), key=lambda row: -row["exposure_bits"])
    listed = [row for row in rows if row["planted"] != 0][:MOST_ROWS]
    cells = [
        [
            row["secret_id"],
            row["secret"],
            "?" if row["planted"] is None else f"{row['planted']}",
            f"{row['exposure_bits']:.1f}",
            f"{row['lower']:.1f} – {row['upper']:.1f}",
            f"{row['rank']:,.0f} of {row['space']:,.0f}",
            row["method"],
        ]
        for row in listed
    ]
    headings = ["secret", "text", "planted", "exposure (bits)", "bounds", "rank", "method"]
    console.print_table(f"The {len(listed)} most exposed secrets", headings, cells)
