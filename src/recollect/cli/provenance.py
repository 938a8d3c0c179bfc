"""`recollect provenance`: were this person's texts used to train this model?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.cli import console
from recollect.cli.auditing import Controls, Members, RunOptions, TrainingOptions, planned, run_audit
from recollect.cli.options import CorpusName, CorpusOptions, ModelName, QuestionOptions

if TYPE_CHECKING:
    from recollect.results.result import Result

MOST_ROWS = 30
"""People who are listed in a terminal; the table in the run folder has all."""
_ASKED = "What the target is asked"


def provenance(
    model: ModelName,
    corpus: CorpusName,
    reading: CorpusOptions,
    asking: QuestionOptions,
    training: TrainingOptions,
    running: RunOptions,
    controls: Controls = None,
    members: Members = None,
    method: Annotated[
        Literal["calibrated", "histogram"], typer.Option(help="calibrated: ours. histogram: the paper's Algorithm 1.")
    ] = "calibrated",
    shadows: Annotated[int, typer.Option(help="Shadow models, each trained on half of the controls' users.")] = 10,
    queries: Annotated[int, typer.Option(min=0, help="Texts of each person; 0 for all.", rich_help_panel=_ASKED)] = 32,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1, help="Texts in all, those of calibration users included. (default: no limit)", rich_help_panel=_ASKED
        ),
    ] = None,
    select: Annotated[
        Literal["surprise", "rarest", "rarest-ranks", "random"],
        typer.Option(
            help="Which texts: those whose words say most (surprise), as the paper prints it (rarest), as its code has "
            "it (rarest-ranks), or any.",
            rich_help_panel=_ASKED,
        ),
    ] = "surprise",
    top_k: Annotated[
        int | None,
        typer.Option(
            min=1, help="Look at so many of its likeliest words only. (default: all it shows)", rich_help_panel=_ASKED
        ),
    ] = None,
    alpha: Annotated[float, typer.Option(help="The share of findings that may be false.")] = 0.05,
) -> None:
    """Find out whether a person's texts were used to train a model that shows ranked words only.

    The corpus is one person's, or has a user column: then everybody in it is judged. The controls are reference users
    known not to be in training: some train shadow models with --recipe, some are asked of the target and say what is
    chance. Shadows are kept in --work, and serve the next person.

    `recollect provenance their-model my-posts.jsonl --controls others.jsonl --recipe word-lstm --top-k 50 --out run`
    """
    from recollect.audits.provenance.audit import ProvenanceAudit
    from recollect.signals.evidence import AUDITED, CONTROLS, TARGET

    audit = ProvenanceAudit(
        method=method,
        shadows=shadows,
        queries=queries or None,
        budget=budget,
        select=select,
        top_k=top_k,
        alpha=alpha,
    )
    plan = planned(
        audit,
        models={TARGET: model},
        corpora={AUDITED: corpus, CONTROLS: controls},
        reading=reading,
        members=members,
        asking=asking,
        running=running,
        training=training,
    )
    run_audit(plan, running, more=_show_people)


def _show_people(result: Result) -> None:
    """The people with the strongest evidence."""
    if "users" not in result.held:
        return
    rows = sorted(result.held["users"].to_pylist(), key=lambda row: (row["p_value"] is None, row["p_value"]))
    cells = [
        [
            row["user"],
            row["decision"],
            _number(row["score"], ".2f"),
            _number(row["p_value"], ".3g"),
            _number(row["p_corrected"], ".3g"),
            f"{row['words']:,}",
            f"{row['queries']}",
        ]
        for row in rows[:MOST_ROWS]
    ]
    title = f"The {len(cells)} people with the strongest evidence" if len(rows) > 1 else "The person"
    headings = ["user", "decision", "score", "p", "p, corrected", "words", "queries"]
    console.print_table(title, headings, cells)


def _number(value: float | None, how: str) -> str:
    """A number, or a dash where there is none."""
    return "–" if value is None else format(value, how)
