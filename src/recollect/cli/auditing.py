"""What the verbs of all audits share: their options, the plan they build, and how its result is shown.

A verb names its own settings, builds a plan with `planned`, and hands it to `run_audit`: see `docs/add-an-audit.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli import console
from recollect.cli.endings import end, ending
from recollect.cli.options import AsJson, CorpusOptions, QuestionOptions, RecipeChanges, Seed, Work

if TYPE_CHECKING:
    from recollect.audits.audit import Audit
    from recollect.pipeline.plan import Plan
    from recollect.recipes.recipe import Recipe
    from recollect.results.result import Result

_GIVEN = "What else is given"
_RUN = "The run"

References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference", metavar="MODEL", help="A model to compare with; may be repeated.", rich_help_panel=_GIVEN
    ),
]
Controls = Annotated[
    str | None,
    typer.Option(
        "--controls",
        metavar="CORPUS",
        help="Records known not to be in training, read like the corpus.",
        rich_help_panel=_GIVEN,
    ),
]
Members = Annotated[
    Path | None,
    typer.Option(
        "--members", metavar="FILE", help="A cohorts.json: who trained the model, if known.", rich_help_panel=_GIVEN
    ),
]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How models are trained that the audit needs and nobody gave."""

    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="RECIPE",
            help="Trains what is missing: a built-in recipe or a YAML file.",
            rich_help_panel=_GIVEN,
        ),
    ] = None
    changes: RecipeChanges = None

    def load(self) -> Recipe | None:
        """The recipe that these options name.

        Raises:
            PlanError: There is no such recipe or setting, or settings of none.
        """
        from recollect.errors import PlanError
        from recollect.recipes.reading import load_recipe

        if self.recipe is None and self.changes:
            raise PlanError("--set changes a recipe, and none is given.", do="Give --recipe, or leave --set out.")
        return None if self.recipe is None else load_recipe(self.recipe, self.changes or [])


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where a run works, what it must not find, and how it is shown."""

    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The run folder: keeps the result, its tables and the plan. (default: it is only shown)",
            rich_help_panel=_RUN,
        ),
    ] = None
    work: Work = Path(".recollect")
    seed: Seed = 0
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if",
            metavar="LIMIT",
            help="End with status 1 if a finding passes this: 'auc>0.6', 'auc.lower>0.6'; repeatable.",
            rich_help_panel=_RUN,
        ),
    ] = None
    json: AsJson = False


def planned(
    audit: Audit,
    *,
    models: Mapping[str, str],
    asking: QuestionOptions,
    running: RunOptions,
    corpora: Mapping[str, str | None] | None = None,
    reading: CorpusOptions | None = None,
    members: Path | None = None,
    files: Mapping[str, Path | None] | None = None,
    training: TrainingOptions | None = None,
) -> Plan:
    """The plan that the options of a verb amount to; what was not given (None) is left out.

    Args:
        audit: The audit with its settings.
        models: The names of models, by their parts.
        asking: How they are asked.
        running: Where the run works.
        corpora: The names of corpora, by their parts.
        reading: How they are read.
        members: Who of the audited corpus trained the target.
        files: Other files, by their parts.
        training: How models are trained that are missing.
    """
    from recollect.pipeline.limits import Limit
    from recollect.pipeline.plan import Plan
    from recollect.signals.evidence import AUDITED

    read = reading or CorpusOptions()
    return Plan(
        audit=audit,
        models={part: asking.named(ref) for part, ref in models.items()},
        corpora={part: read.named(ref) for part, ref in (corpora or {}).items() if ref is not None},
        cohorts={} if members is None else {AUDITED: members},
        files={part: path for part, path in (files or {}).items() if path is not None},
        recipe=None if training is None else training.load(),
        seed=running.seed,
        work=running.work,
        workers=asking.workers,
        limits=tuple(Limit.parse(limit) for limit in running.fail_if or ()),
    )


def numbered(part: str, refs: Sequence[str] | None) -> dict[str, str]:
    """Models that play one part, by name: one as it is, several with numbers.

    >>> numbered("reference", ["gpt2"]), numbered("reference", ["a", "b"])
    ({'reference': 'gpt2'}, {'reference-0': 'a', 'reference-1': 'b'})
    """
    given = list(refs or ())
    return {part: given[0]} if len(given) == 1 else {f"{part}-{i}": ref for i, ref in enumerate(given)}


def run_audit(plan: Plan, running: RunOptions, *, more: Callable[[Result], None] | None = None) -> None:
    """Run the plan, show how far it is and what was found, and end with the status that CI needs.

    Status 1: a limit was passed. Status 2: a part of the audit failed, or a limit cannot be judged. The result is shown
    and kept in either case.

    Args:
        plan: What is to be run.
        running: Where it is kept and how it is shown.
        more: Shows people what else there is, such as the rows of a table; corpus text masked.
    """
    from recollect.pipeline.run import run

    with console.stages() as progress:
        result = run(plan, running.out, progress=progress)
    show_result(result, running)
    if more is not None and not running.json:
        more(result)
    if running.out is not None:
        report_run(running.out, [result])
    end([ending(result, plan)])


def show_result(result: Result, running: RunOptions) -> None:
    """The result on standard output, as a table or as JSON, and on standard error what else is to be known."""
    from recollect.results.summary import summary_rows

    if running.json:
        console.print_json(result.model_dump(mode="json"))
    else:
        rows = [[row.name, row.value, row.interval, row.n, row.reading] for row in summary_rows(result)]
        console.print_table(result.verdict_text, ["number", "value", "interval", "counted", "what it means"], rows)
        for line in _remarks(result):
            console.say(line)
    if running.out is not None:
        console.say(f"The result is in {running.out}/results/{result.audit}.json.")
    elif result.tables:
        console.say(f"Give --out DIR to keep the result and its tables ({', '.join(result.tables)}).")


def report_run(folder: Path, results: Sequence[Result]) -> None:
    """Write the report of the run folder and say where it is; text is shown of those audits that were to show it."""
    from recollect.report.writing import write_report

    showing = [result.audit for result in results if result.settings.get("show_text") is True]
    page = write_report(folder, show_text=showing)
    console.say(f"The report is in {page}.")


def _remarks(result: Result) -> list[str]:
    """What a reader of the numbers has to know, in one line each; why there are none is what the run ends with."""
    from recollect.results.result import plain_text
    from recollect.results.summary import count_words

    said = [f"Note: {plain_text(note.text)}" for note in result.notes]
    said += [f"Skipped: {each.finding}: {each.reason}" for each in result.skipped if each.finding is not None]
    said += [f"Dropped: {count:,} ({count_words(reason)})" for reason, count in result.dropped.items()]
    return said + [f"Not tested: {limit}" for limit in result.untested]
