"""`recollect demo`: all five audits on synthetic people and small models, with known ground truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli import console
from recollect.cli.console import print_error
from recollect.cli.exit_status import COULD_NOT
from recollect.cli.shared_options import AsJson, Seed

if TYPE_CHECKING:
    from recollect.pipeline.demo.demonstration import CheckedVerdict


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Gets data, models, plans and reports.")] = Path(
        "recollect-demo"
    ),
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Generate synthetic people, train small models on some of them, and run all five audits.

    No real person's data is used, and nothing is downloaded. The ground truth is known, so you can see whether each
    verdict is right. The same seed gives the same results. About two minutes; killed and run again, it resumes.
    """
    console.say("Synthetic people, small models, five audits: about two minutes. Nothing is downloaded.")
    import recollect.recipes.private  # noqa: F401 - says how to install what is missing, before anything is made
    from recollect.files import hold_lock
    from recollect.pipeline.demo.demonstration import demonstrate

    with console.show_stages() as progress, hold_lock(out, purpose="writing into", temporary=True):
        shown = list(demonstrate(out, seed=seed, progress=progress))
    if json:
        summaries = [
            {"plan": each.plan, "truth": each.truth.known, "right": each.is_right, "withheld": each.is_withheld}
            for each in shown
        ]
        results = [each.result.model_dump(mode="json") for each in shown]
        console.print_json([{**facts, "result": result} for facts, result in zip(summaries, results, strict=True)])
    else:
        console.print_grid(
            f"{_count_verdicts(shown)}; the sentences are in the reports",
            [[*_build_demo_cells(each)] for each in shown],
            headings=["", "Audit", "Model", "Verdict", "What is true"],
        )
    _write_demo_pages(out, list(dict.fromkeys(each.plan for each in shown)))
    if withheld := [_name_verdict(each) for each in shown if each.is_withheld]:
        console.say(
            f"Inconclusive: {', '.join(withheld)}. A safeguard objected (the report says which). Each of them objects "
            "to about 1 in 20 fair comparisons, so that it can stop unfair ones. Another --seed draws other people."
        )
    if wrong := [_name_verdict(each) for each in shown if not each.is_right and not each.is_withheld]:
        print_error(f"Not the right verdict: {', '.join(wrong)}.")
        raise typer.Exit(COULD_NOT)


def _count_verdicts(shown: Sequence[CheckedVerdict]) -> str:
    """How many verdicts of the demo are right, and how many were withheld."""
    right, withheld = (sum(getattr(each, name) for each in shown) for name in ("is_right", "is_withheld"))
    if not withheld:
        return f"{right} of {len(shown)} verdicts are right"
    return f"{right} of {len(shown) - withheld} verdicts are right, {withheld} inconclusive"


def _name_verdict(shown: CheckedVerdict) -> str:
    """Which verdict of the demo this is."""
    return f"{shown.result.audit} of the {shown.truth.model}"


def _build_demo_cells(shown: CheckedVerdict) -> list[str]:
    """A row of the table that `recollect demo` prints."""
    from recollect.report.presentations import find_presentation
    from recollect.report.questions import choose_light

    light = choose_light(shown.result, find_presentation(shown.result.audit)).words
    mark = "✓ right" if shown.is_right else "–" if shown.is_withheld else "✗ WRONG"
    return [mark, shown.result.audit, shown.truth.model, light, shown.truth.brief]


def _write_demo_pages(out: Path, plans: list[str]) -> None:
    """Write a report for each plan and a comparison of both, and say where they are."""
    from recollect.files import write_text
    from recollect.report.comparison_page import render_comparison_page
    from recollect.report.report_writer import write_report
    from recollect.results.comparison import compare_runs
    from recollect.results.run_folder import RunFolder

    before, after = (out / plan for plan in plans)
    for folder in (before, after):
        write_report(folder)
    found = compare_runs(RunFolder(before).read_results(), RunFolder(after).read_results())
    write_text(out / "compared.html", render_comparison_page(found, (before.name, after.name)))
    console.say("All people are synthetic, and the members of each model are in the data folder.")
    console.say(f"The report:   {before / 'report.html'}")
    console.say(f"Protected:    {after / 'report.html'} (differential privacy, a deletion that was done)")
    console.say(f"Side by side: {out / 'compared.html'}")
    console.say(f"The plans:    {out}/{plans[0]}.yaml, {out}/{plans[1]}.yaml (`recollect run` takes them)")
