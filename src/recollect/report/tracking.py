"""Findings in experiment trackers: MLflow, Weights & Biases, TensorBoard. Numbers and outcomes, never text or names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from recollect.errors import MissingDependency
from recollect.results.result import Result


def collect_metrics(results: Iterable[Result]) -> dict[str, float]:
    """Metrics for experiment tracking: every finding as `audit/finding`, with the ends of its interval.

    Exceeded limits are counted as `audit/limits_exceeded`, where limits were set.
    """
    metrics = dict[str, float]()
    for result in results:
        for finding in result.findings:
            name = f"{result.audit}/{finding.name}"
            low, high = finding.interval or (None, None)
            ends = {f"{name}.lower": low, f"{name}.upper": high}
            metrics |= {name: finding.value} | {key: end for key, end in ends.items() if end is not None}
        if result.limits:
            exceeded = sum(check.status == "exceeded" for check in result.limits)
            metrics[f"{result.audit}/limits_exceeded"] = float(exceeded)
    return metrics


def collect_tags(results: Iterable[Result]) -> dict[str, str]:
    """Tags for experiment tracking: outcome and severity of each audit, the digest of its model, the version."""
    tags = dict[str, str]()
    for result in results:
        trace = result.provenance
        facts = {"outcome": result.outcome, "outcome_code": result.outcome_code, "severity": result.severity}
        facts |= {} if trace is None else {"model": trace.model, "corpus": trace.corpus, "version": trace.recollect}
        tags |= {f"recollect.{result.audit}.{key}": str(value) for key, value in facts.items() if value is not None}
    return tags


def log_to_mlflow(results: Iterable[Result], *, run_id: str | None = None, step: int | None = None) -> str:
    """Track results in MLflow: log metrics and tags to a run; tells its id.

    Args:
        results: Of one or more audits.
        run_id: An existing run; None for the active one or, if there is none, a new one.
        step: The training step that the model is of.

    Raises:
        MissingDependency: MLflow is not installed.
    """
    try:
        import mlflow
    except ImportError as error:
        raise _build_missing("MLflow", "mlflow-skinny") from error
    many = list(results)
    active = mlflow.active_run()
    if active is not None and run_id in (None, active.info.run_id):
        mlflow.log_metrics(collect_metrics(many), step=step)
        mlflow.set_tags(collect_tags(many))
        return str(active.info.run_id)
    with mlflow.start_run(run_id=run_id, nested=active is not None) as run:
        mlflow.log_metrics(collect_metrics(many), step=step)
        mlflow.set_tags(collect_tags(many))
        return str(run.info.run_id)


def log_to_wandb(results: Iterable[Result], *, run: Any = None, step: int | None = None) -> None:
    """Track results in Weights & Biases: metrics go to a run, outcomes and severities to its summary.

    Args:
        results: Of one or more audits.
        run: What `wandb.init` gave; None for the current one.
        step: The training step that the model is of.

    Raises:
        MissingDependency: wandb is not installed.
    """
    many = list(results)
    if run is None:
        try:
            import wandb
        except ImportError as error:
            raise _build_missing("Weights & Biases", "wandb") from error
        run = wandb.run or wandb.init(project="recollect")
    run.log(collect_metrics(many), step=step)
    run.summary.update(collect_tags(many))


def log_to_tensorboard(results: Iterable[Result], folder: str | Path, *, step: int = 0) -> Path:
    """Track results in TensorBoard: write an event file; tells its folder.

    Args:
        results: Of one or more audits.
        folder: The log folder.
        step: The training step that the model is of.

    Raises:
        MissingDependency: TensorBoard is not installed.
    """
    try:
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.plugins.text.summary_v2 import text_pb
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        raise _build_missing("TensorBoard", "tensorboard") from error
    from tensorboard.compat.proto.event_pb2 import Event

    many = list(results)
    writer = EventFileWriter(str(folder))
    values = [Summary.Value(tag=name, simple_value=value) for name, value in collect_metrics(many).items()]
    values += [value for name, text in collect_tags(many).items() for value in text_pb(name, text).value]
    writer.add_event(Event(step=step, summary=Summary(value=values)))
    writer.close()
    return Path(folder)


def _build_missing(name: str, package: str) -> MissingDependency:
    """Says how to install a tracker."""
    return MissingDependency(f"{name} is not installed.", do=f"pip install {package}", code="tracker_missing")
