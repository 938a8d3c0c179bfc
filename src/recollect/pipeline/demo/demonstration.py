"""The demonstration from end to end: a world is made, and two plans are run in it as any plan is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from recollect.audits.workspace import Progress
from recollect.files import make_private_folder, write_text
from recollect.pipeline.demo.truth import TRUTHS, Truth
from recollect.pipeline.demo.world import World
from recollect.pipeline.planfile import read_plan
from recollect.pipeline.series import run_all
from recollect.results.result import Result


@dataclass(frozen=True, kw_only=True)
class CheckedVerdict:
    """One audit's verdict, and the ground truth."""

    plan: str
    """The name of the plan, and of the run folder."""
    result: Result
    truth: Truth
    is_right: bool
    """Whether the verdict is right."""


def demonstrate(folder: Path, *, seed: int, progress: Progress) -> Iterator[CheckedVerdict]:
    """Each verdict as it is reached, beside the ground truth. It resumes after a kill.

    Args:
        folder: Gets data, models, plans, and one run folder for each plan.
        seed: The same seed gives the same verdicts and numbers.
        progress: Called with the progress.
    """
    make_private_folder(folder)
    for plan in TRUTHS:
        text = (files(__package__) / f"{plan}.yaml").read_text(encoding="utf-8")
        write_text(folder / f"{plan}.yaml", text.replace("seed: 0", f"seed: {seed}"))
    world = World(folder=folder, seed=seed)
    world.write_data()
    recipes = {plan.audit.name: plan.load_recipe() for plan in read_plan(folder / "unprotected.yaml").plans}
    world.train({audit: recipe for audit, recipe in recipes.items() if recipe is not None}, progress)
    for plan, truths in TRUTHS.items():
        for finished in run_all(read_plan(folder / f"{plan}.yaml"), progress=progress):
            result = finished.result
            truth = truths[result.audit]
            right = truth.is_right(
                result, world.list_people(truth.training_corpus) if truth.training_corpus else frozenset()
            )
            yield CheckedVerdict(plan=plan, result=result, truth=truth, is_right=right)
