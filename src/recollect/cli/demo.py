"""`recollect demo`: the whole way once, on made-up people."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli import console
from recollect.cli.options import AsJson, Seed


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The run folder.")] = Path("recollect-demo"),
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Make up people, train a small model on half of them, and show what it remembers.

    Nobody's data is used, and nothing is fetched from anywhere. The truth is known, so you can see whether the verdict
    is right. The same seed gives the same result.
    """
    console.say("Making up people and training a small model on half of them …")
    from recollect.pipeline.demo import demonstrate
    from recollect.results.summary import summary_rows

    with ExitStack() as stack:
        bars: dict[str, console.Progress] = {}

        def progress(task: str, done: int, total: int) -> None:
            if task not in bars:
                bars[task] = stack.enter_context(console.progress(task))
            bars[task](done, total)

        result = demonstrate(out, out / "work", seed=seed, progress=progress)
    if json:
        console.print_json(result.model_dump(mode="json"))
        return
    rows = [[row.name, row.value, row.interval, row.n, row.reading] for row in summary_rows(result)]
    console.print_table(result.verdict, ["number", "value", "interval", "counted", "what it means"], rows)
    console.say(f"The result is in {out}/results/demo.json, and who is who in {out}/cohorts.json.")
