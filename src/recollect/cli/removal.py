"""`recollect removal`: has this data set really been removed from the model?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.cli import console
from recollect.cli.auditing import Controls, References, RunOptions, TrainingOptions, numbered, planned, run_audit
from recollect.cli.options import CorpusName, CorpusOptions, ModelName, QuestionOptions

if TYPE_CHECKING:
    from recollect.results.result import Result

MOST_ROWS = 20
"""People who are listed in a terminal; the table in the run folder has all."""
_METHOD = "How removal is told"


def removal(
    model: ModelName,
    corpus: CorpusName,
    reading: CorpusOptions,
    asking: QuestionOptions,
    training: TrainingOptions,
    running: RunOptions,
    controls: Controls = None,
    reference: References = None,
    method: Annotated[
        Literal["calibrated", "ema", "ks"],
        typer.Option(help="Ours, or one as published.", rich_help_panel=_METHOD),
    ] = "calibrated",
    by: Annotated[
        Literal["set", "user"], typer.Option(help="Judge the set, or every person in it.", rich_help_panel=_METHOD)
    ] = "set",
    models: Annotated[
        int, typer.Option(help="Calibration models to train with --recipe.", rich_help_panel=_METHOD)
    ] = 8,
    neighbours: Annotated[
        int | None,
        typer.Option(
            help="Controls that stand for each audited record; 0: all alike. (default: 3 to 10, with labels)",
            rich_help_panel=_METHOD,
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="The share still in from which on a set is not gone.", rich_help_panel=_METHOD)
    ] = 0.5,
    thresholds: Annotated[
        Literal["global", "per-class"], typer.Option(help="Of ema.", rich_help_panel=_METHOD)
    ] = "global",
    test: Annotated[Literal["t", "ks"], typer.Option(help="Of ema's votes.", rich_help_panel=_METHOD)] = "t",
    alpha: Annotated[
        float | None, typer.Option(help="The error that a verdict may make. (default: 0.05; of ema 0.1)")
    ] = None,
) -> None:
    """Find out whether a data set has really been removed from a model.

    The corpus is the query set, whose removal is in question; the controls are a calibration set of the same kind that
    the model never saw. The recipe, the target's own, trains calibration models on halves of it, which show how members
    look. Without a recipe, the target is compared with a model retrained without the set.

    `recollect removal my-model query.npz --controls calibration.npz --recipe mlp --out run`
    """
    from recollect.audits.removal.audit import RemovalAudit
    from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET

    alone = training.recipe is None and bool(reference) and method == "calibrated"
    audit = RemovalAudit(
        method=method,
        by=by,
        models=0 if alone else models,
        neighbours=neighbours,
        tolerance=tolerance,
        thresholds=thresholds,
        test=test,
        alpha=alpha,
    )
    plan = planned(
        audit,
        models={TARGET: model, **numbered(REFERENCE, reference)},
        corpora={AUDITED: corpus, CONTROLS: controls},
        reading=reading,
        training=training,
        asking=asking,
        running=running,
    )
    run_audit(plan, running, more=_show_people)


def _show_people(result: Result) -> None:
    """The people who show most that they are still there."""
    if "users" not in result.held:
        return
    rows = sorted(result.held["users"].to_pylist(), key=lambda row: (row["p_still_there"], row["user"]))
    cells = [
        [row["user"], row["said"], f"{row['p_still_there']:.2g}", f"{row['p_gone']:.2g}"] for row in rows[:MOST_ROWS]
    ]
    console.print_table(
        f"The {len(cells)} people who stand out most", ["user", "said", "p still there", "p gone"], cells
    )
