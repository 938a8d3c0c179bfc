"""`recollect demo`: the whole way once, on made-up people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli import console
from recollect.cli.auditing import RunOptions, report_run, show_result
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

    with console.stages() as progress:
        result = demonstrate(out, out / "work", seed=seed, progress=progress)
    show_result(result, RunOptions(out=out, json=json))
    report_run(out, result)
    console.say(f"Who is who is in {out}/cohorts.json.")
