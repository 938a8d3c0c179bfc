"""`recollect evaluate`: how well a model predicts a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.cli import console
from recollect.cli.shared_options import (
    AsJson,
    BackendName,
    CorpusName,
    CorpusOptions,
    ModelName,
    ModelOptions,
    Seed,
    SharedWork,
    Threads,
    Work,
    Workers,
    WorkLimitGb,
)

if TYPE_CHECKING:
    from recollect.stats.intervals import Estimate

READINGS = {
    "accuracy": "share of tokens that the model ranks first",
    "unknown_share": "share of tokens outside its vocabulary",
    "nats_per_token": "mean loss; 0 would be certainty",
    "perplexity": "as uncertain as a choice among so many equally likely tokens",
    "bits_per_character": "loss by length of text: compares models whose tokens differ",
}


def evaluate(
    model: ModelName,
    corpus: CorpusName,
    reading: CorpusOptions,
    scoring: ModelOptions,
    work: Work = Path(".recollect"),
    shared_work: SharedWork = False,
    work_limit_gb: WorkLimitGb = None,
    workers: Workers = None,
    threads: Threads = None,
    backend: BackendName = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Measure how well a model predicts a corpus: accuracy, perplexity, bits per character, with intervals by user.

    Compare the figures for texts that it was trained on with those for texts that it was not: the gap shows
    overfitting. A model without such a gap can still have memorised records.
    """
    texts = reading.read(corpus)
    from recollect.session import Session

    with console.show_stages() as progress:
        session = Session(
            work=work,
            shared_work=shared_work,
            work_limit_gb=work_limit_gb,
            seed=seed,
            workers=workers,
            threads=threads,
            backend=backend,
            progress=progress,
        )
        found = session.evaluate(model, texts, **scoring)
    if json:
        console.print_json({name: _evaluation_to_json(estimate) for name, estimate in found.items()})
        return
    rows = [
        [name.replace("_", " "), f"{estimate.value:.4f}", _format_evaluation_interval(estimate), READINGS[name]]
        for name, estimate in found.items()
    ]
    counts = next(iter(found.values())).n
    title = f"{model} on {texts.name}: {counts['tokens']:,} tokens of {counts['users']:,} users or records"
    console.print_table(title, ["number", "value", "95 % interval", "what it means"], rows)


def _format_evaluation_interval(estimate: Estimate) -> str:
    """The interval of an evaluation in words, or why there is none."""
    if estimate.interval is None:
        return f"none: {estimate.why_no_interval}"
    return f"{estimate.interval.low:.4f} – {estimate.interval.high:.4f}"


def _evaluation_to_json(estimate: Estimate) -> dict[str, Any]:
    """The estimates of an evaluation as JSON."""
    interval = estimate.interval
    return {
        "value": estimate.value,
        "interval": None if interval is None else [interval.low, interval.high],
        "confidence": None if interval is None else interval.confidence,
        "n": dict(estimate.n),
        "method": estimate.method,
        **({"why_no_interval": estimate.why_no_interval} if interval is None else {}),
    }
