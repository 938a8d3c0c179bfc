"""The demonstration from end to end: two plans are run in its world, and each verdict is checked against the truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pyarrow.compute as pc

from recollect.audits.common.outcomes import EXPLAINED_BY_TEXTS, NOT_COMPARABLE, PLACEBO_FAILED
from recollect.audits.workspace import Progress
from recollect.files import make_private_folder, write_text
from recollect.pipeline.demo.world import DemoWorld
from recollect.pipeline.plans.plan_file import read_plan
from recollect.pipeline.run import run_all
from recollect.results.result import Outcome, Result

NEARLY_ALL = 0.9
"""So many of those whom a verdict names must have been learnt from, for it to be right. The audits promise that of
those they name at most one in twenty is named wrongly on average; a single run may have twice as many."""
_NAMED_ROWS = {
    "provenance": ("users", pc.field("decision") == "member"),
    "leakage": ("users", pc.field("flagged")),
    "membership": ("candidates", pc.field("identified")),
}
"""Audits that name people: in which table, and by what."""
_SAFEGUARDS = frozenset({NOT_COMPARABLE, PLACEBO_FAILED, EXPLAINED_BY_TEXTS})
"""Why an audit may decline to answer although nothing is amiss: each safeguard objects to some fair comparisons."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What is known of one model."""

    model: str
    known: str
    """What it was trained on, in one sentence."""
    brief: str
    """The same in a few words."""
    outcome: Outcome
    """What an audit ought to say of it."""
    training_corpus: str = ""
    """Its training corpus, where an audit of it identifies people."""

    def is_right(self, result: Result, learners: frozenset[str]) -> bool:
        """Whether a verdict is correct: its outcome is, and nearly all people it identifies are members.

        A verdict that names nobody names nobody wrongly: whether it ought to have, is not judged here.

        Args:
            result: The result of an audit.
            learners: The users the model was trained on.
        """
        if result.outcome != self.outcome:
            return False  # what could not be done has no tables either
        people = list_named_users(result)
        return len(people & learners) >= NEARLY_ALL * len(people)


def list_named_users(result: Result) -> frozenset[str]:
    """The people that a verdict of the demonstration identifies; none, if its audit identifies nobody."""
    if result.audit not in _NAMED_ROWS:
        return frozenset()
    table, chosen = _NAMED_ROWS[result.audit]
    return frozenset(result.tables_in_memory[table].filter(chosen).column("user").to_pylist())


TRUTHS = {
    "unprotected": {
        "provenance": Truth(
            model="language model",
            known="It was trained on 30 of these 60 people.",
            brief="30 of 60 people in it",
            training_corpus="planted.jsonl",
            outcome="found",
        ),
        "exposure": Truth(
            model="language model",
            known="15 canaries were in its training data, 1, 4 or 16 times.",
            brief="15 canaries in it",
            outcome="found",
        ),
        "leakage": Truth(
            model="language model",
            known="It was trained on these texts for many epochs.",
            brief="trained on these texts",
            training_corpus="planted.jsonl",
            outcome="found",
        ),
        "membership": Truth(
            model="masked model",
            known="It was trained on 20 of these 40 patients.",
            brief="20 of 40 patients in it",
            training_corpus="treated.jsonl",
            outcome="found",
        ),
        "removal": Truth(
            model="digits classifier",
            known="200 images were to be removed; nothing was done.",
            brief="nothing was removed",
            outcome="found",
        ),
    },
    "protected": {
        "exposure": Truth(
            model="private model",
            known="It was trained on the same secrets with user-level differential privacy (ε = 2).",
            brief="same canaries, ε = 2",
            outcome="not_found",
        ),
        "leakage": Truth(
            model="private model",
            known="It was trained on the same texts with user-level differential privacy (ε = 2).",
            brief="same texts, ε = 2",
            training_corpus="planted.jsonl",
            outcome="not_found",
        ),
        "removal": Truth(
            model="retrained model",
            known="It was retrained without the 200 images.",
            brief="retrained without them",
            outcome="not_found",
        ),
    },
}
"""By plan, and by audit."""


@dataclass(frozen=True, kw_only=True)
class CheckedVerdict:
    """One audit's verdict, and the ground truth."""

    plan: str
    """The name of the plan, and of the run folder."""
    result: Result
    truth: Truth
    is_right: bool
    """Whether the verdict is right."""

    @property
    def is_withheld(self) -> bool:
        """Whether the audit declined to answer because one of its safeguards objected: neither right nor wrong."""
        return self.result.outcome == "inconclusive" and self.result.outcome_code in _SAFEGUARDS


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
    world = DemoWorld(folder=folder, seed=seed)
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
