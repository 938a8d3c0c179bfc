"""`recollect leakage`: which sequences of which user come out of a model, and whose could they be?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli import console
from recollect.cli.auditing import (
    Controls,
    Members,
    References,
    RunOptions,
    TrainingOptions,
    numbered,
    planned,
    run_audit,
)
from recollect.cli.options import CorpusName, CorpusOptions, ModelName, QuestionOptions, ShowText

if TYPE_CHECKING:
    from recollect.results.result import Result

MOST_ROWS = 20
"""Sequences that are listed in a terminal; the table in the run folder has all."""


def leakage(
    model: ModelName,
    corpus: CorpusName,
    reading: CorpusOptions,
    asking: QuestionOptions,
    training: TrainingOptions,
    running: RunOptions,
    reference: References = None,
    controls: Controls = None,
    members: Members = None,
    top_k: Annotated[
        int,
        typer.Option(
            min=1, help="A word is said if all of it is among so many likeliest; also told for 1, 3, 5 … below."
        ),
    ] = 1,
    min_length: Annotated[int, typer.Option(min=1, help="How many words a sequence must have.")] = 1,
    folds: Annotated[
        int,
        typer.Option(help="With --recipe: models to train, each without two of so many folds; 0 to train none."),
    ] = 8,
    removable: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=0.5,
            help="With --recipe: up to this share of users with runs, one reference without all of them; 0 for folds.",
        ),
    ] = 0.1,
    deniable_at: Annotated[
        float, typer.Option(help="Up to which epsilon (nats per word) a user can plausibly deny.")
    ] = 1.0,
    alpha: Annotated[float, typer.Option(help="How often a model that saw nobody may be accused.")] = 0.05,
    show_text: ShowText = False,
) -> None:
    """Find out which sequences of which user come out of a model when it is prompted with their texts.

    The corpus is the training data, with a user column. Words in a row that the model finds likeliest are a run; runs
    that one user alone wrote are what may leak. Leakage epsilon says how much likelier the model finds them than a
    reference that has not seen the user: given (--reference), or trained without them (--recipe, with --folds and
    --removable).

    It is positive without any leak. What is chance comes from users known not to be in training (--controls, the most
    certain), from a second --reference, or from a second model of the recipe. Without any of these, sequences are
    counted and nothing is tested.

    `recollect leakage my-model train.jsonl --recipe word-gru --controls others.jsonl --out run`

    `recollect leakage my-model train.jsonl --reference public-model --top-k 3 --fail-if 'flagged_users>0'`
    """
    from recollect.audits.leakage.audit import LeakageAudit
    from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET

    audit = LeakageAudit(
        top_k=top_k,
        min_length=min_length,
        folds=folds,
        removable=removable,
        deniable_at=deniable_at,
        alpha=alpha,
        show_text=show_text,
    )
    plan = planned(
        audit,
        models={TARGET: model, **numbered(REFERENCE, reference)},
        corpora={AUDITED: corpus, CONTROLS: controls},
        reading=reading,
        asking=asking,
        running=running,
        members=members,
        training=training,
    )
    run_audit(plan, running, more=_show_sequences)


def _show_sequences(result: Result) -> None:
    """The sequences that give away most."""
    rows = result.held["sequences"].slice(0, MOST_ROWS).to_pylist()
    cells = [
        [
            row["user"],
            row["text"],
            f"{row['words']}",
            f"{row['times']}",
            "" if row["epsilon"] is None else f"{row['epsilon']:.2f}",
            "" if row["epsilon_sum"] is None else f"{row['epsilon_sum']:.1f}",
            row["personal"],
        ]
        for row in rows
    ]
    headings = ["user", "sequence", "words", "written (times)", "epsilon", "nats", "looks like"]
    console.print_table(f"The {len(rows)} sequences that give away most", headings, cells)
