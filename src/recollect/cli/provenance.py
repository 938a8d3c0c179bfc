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
    shadows: Annotated[
        int, typer.Option(help="Shadow models, each trained on half of the users who do not calibrate.")
    ] = 10,
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
    pieces: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Ask about every text in overlapping pieces of so many words, too: 8 tells far more of a model that "
            "shows one word, for some ten times as many queries. (default: whole texts only)",
            rich_help_panel=_ASKED,
        ),
    ] = None,
    calibration: Annotated[
        float, typer.Option(help="The share of the controls' users who calibrate and train no shadow.")
    ] = 0.25,
    alpha: Annotated[float, typer.Option(help="The share of findings that may be false.")] = 0.05,
) -> None:
    """Find out whether a person's texts were used to train a model that shows ranked words, or only its first guess.

    CORPUS is one person's texts, or has a user column: then everybody in it is judged. --controls are texts of at least
    76 people who are known not to be in training and who write as the person does. Three quarters of them train shadow
    models with --recipe, which say how hard each word is. One quarter calibrates: the target is asked about them as
    about the person, and they say what chance is.

    The answer is a p-value: how often somebody who was not in training is predicted as well as this person. Shadows are
    kept in --work and serve the next person, who then waits for seconds.

    `recollect provenance their-model/ my-posts.jsonl --controls others.jsonl --recipe word-lstm --out run/`

    A model that shows one word, and few questions: add `--top-k 1 --queries 8 --budget 400`.
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
        pieces=pieces,
        calibration=calibration,
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
