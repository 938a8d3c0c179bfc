"""`recollect membership`: was this record, or this person's set of records, in the training data?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
from recollect.cli.options import CorpusName, CorpusOptions, ModelName, QuestionOptions

if TYPE_CHECKING:
    from recollect.results.result import Result

MOST_ROWS = 20
"""Candidates that are listed in a terminal; the table in the run folder has all."""
_SIGNAL = "How membership is told"
_EPSILON = "Bounds on epsilon"


def membership(
    model: ModelName,
    corpus: CorpusName,
    reading: CorpusOptions,
    asking: QuestionOptions,
    training: TrainingOptions,
    running: RunOptions,
    controls: Controls = None,
    reference: References = None,
    members: Members = None,
    signal: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="`recollect list` names all. (default: ratio with a reference, else loss)",
            rich_help_panel=_SIGNAL,
        ),
    ] = None,
    signal_set: Annotated[
        list[str] | None,
        typer.Option(metavar="SETTING=VALUE", help="A setting of the signal: fraction=0.1.", rich_help_panel=_SIGNAL),
    ] = None,
    fpr: Annotated[
        str,
        typer.Option(metavar="RATES", help="False positive rates to decide at, by commas.", rich_help_panel=_SIGNAL),
    ] = "0.01,0.1",
    by: Annotated[
        Literal["record", "user"],
        typer.Option(help="Judge records, or users by the mean of theirs.", rich_help_panel=_SIGNAL),
    ] = "record",
    shadows: Annotated[
        int,
        typer.Option(
            help="Shadow models to train with --recipe, for lira, rmia and ensemble.", rich_help_panel=_SIGNAL
        ),
    ] = 8,
    shadow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="A shadow model, called shadow-0, shadow-1 … in the order given; --members says who trained it.",
            rich_help_panel=_SIGNAL,
        ),
    ] = None,
    perturber: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="For neighbourhood: a masked model that writes the neighbours. (default: words as frequent)",
            rich_help_panel=_SIGNAL,
        ),
    ] = None,
    alpha: Annotated[float, typer.Option(help="The error that naming candidates may make.")] = 0.05,
    embedder: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="With --members: a general masked model, to predict which records are exposed.",
            rich_help_panel=_SIGNAL,
        ),
    ] = None,
    canaries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The .canaries.json of `recollect plant`.", rich_help_panel=_EPSILON),
    ] = None,
    claimed_epsilon: Annotated[
        float | None, typer.Option(help="What the model promises. (default: its card's)", rich_help_panel=_EPSILON)
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="The delta of that promise. (default: its card's, else 0)", rich_help_panel=_EPSILON),
    ] = None,
) -> None:
    """Find out which records, or whose, were in the training data of a model.

    The corpus holds the candidates; the controls are a population known not to be in training, which sets the
    thresholds. With --members, the truth, it says how well membership can be told.

    `recollect membership my-model candidates.jsonl --reference base-model --controls population.jsonl --out run`
    """
    from recollect.audits.membership.audit import MembershipAudit
    from recollect.audits.membership.epsilon import CANARIES
    from recollect.audits.membership.susceptibility import EMBEDDER
    from recollect.documents import changes
    from recollect.models.refs import natural_reference
    from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, SHADOW, TARGET
    from recollect.signals.neighbourhood import PERTURBER

    base = natural_reference(model)
    references = reference or ([base] if base is not None else [])
    audit = MembershipAudit(
        signal=signal,
        signal_settings=dict(changes(signal_set or [])),
        fpr=_rates(fpr),
        by=by,
        shadows=shadows,
        alpha=alpha,
        **claim_of(Path(model), claimed_epsilon, delta),
    )
    plan = planned(
        audit,
        models={
            TARGET: model,
            **numbered(REFERENCE, references),
            **{f"{SHADOW}-{i}": ref for i, ref in enumerate(shadow or [])},
            **({EMBEDDER: embedder} if embedder else {}),
            **({PERTURBER: perturber} if perturber else {}),
        },
        corpora={AUDITED: corpus, CONTROLS: controls},
        reading=reading,
        members=members,
        files={CANARIES: canaries},
        training=training,
        asking=asking,
        running=running,
    )
    run_audit(plan, running, more=_show_candidates)


def claim_of(folder: Path, epsilon: float | None, delta: float | None) -> dict[str, Any]:
    """The promise of privacy that is audited: what was typed or, without that, what the model's card says."""
    from recollect.models.folders import read_settings

    found = read_settings(folder / "card.json", str(folder)).get("privacy")
    stated = found if isinstance(found, dict) else {}
    claimed = stated.get("epsilon") if epsilon is None else epsilon
    told = {"claimed_epsilon": claimed, "delta": stated.get("delta", 0.0) if delta is None else delta}
    unit = stated.get("unit") if epsilon is None else None
    return told if unit not in {"record", "user"} else {**told, "claimed_unit": unit}


def _rates(written: str) -> tuple[float, ...]:
    """Rates between commas."""
    from recollect.errors import PlanError

    try:
        return tuple(float(rate) for rate in written.split(","))
    except ValueError as error:
        raise PlanError(f"--fpr {written!r} is no list of rates.", do="Write them as 0.01,0.1.") from error


def _show_candidates(result: Result) -> None:
    """The candidates with the most evidence; nobody where there are no controls to judge by."""
    if "p_value" not in result.held["candidates"].column_names:
        return
    rows = sorted(result.held["candidates"].to_pylist(), key=lambda row: (row["p_value"], -row["score"], row["record"]))
    flags = [name for name in result.held["candidates"].column_names if name.startswith("flagged_at_fpr_")]
    cells = [
        [
            row["record"],
            row["user"],
            f"{row['score']:.4g}",
            f"{row['p_value']:.2g}",
            f"{row['p_corrected']:.2g}",
            *("yes" if row[flag] else "no" for flag in flags),
        ]
        for row in rows[:MOST_ROWS]
    ]
    headings = ["candidate", "user", "score", "p", "p corrected", *(f"at {flag.rpartition('_')[2]}" for flag in flags)]
    console.print_table(f"The {len(cells)} candidates that stand out most", headings, cells)
