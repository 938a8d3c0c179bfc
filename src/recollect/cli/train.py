"""`recollect train`: a recipe and a corpus become a model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli import console
from recollect.cli.declared_fields import DeclaredField, list_fields
from recollect.cli.shared_options import CorpusName, CorpusOptions, RecipeChanges
from recollect.cli.verb_wrapper import VerbOptionGroup

if TYPE_CHECKING:
    from recollect.recipes.training.loop import TrainingProgress

RecipeName = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE", help="A built-in recipe (`recollect list` names them) or a YAML file.", show_default=False
    ),
]
_PRIVACY = "Differential privacy"


class TrainingOptionGroup(VerbOptionGroup):
    """How the model is trained besides its recipe."""

    @classmethod
    @cache
    def list_fields(cls) -> list[DeclaredField]:
        """The fields of training options."""
        from recollect.pipeline.preparation import TrainingOptions

        found = list_fields(TrainingOptions, skip=frozenset({"validation"}), panel="How it is trained")
        files = {"canaries": "FILE", "cohorts": "FILE", "cohort": "NAME"}
        return [
            replace(
                each,
                panel=_PRIVACY if each.name.startswith("dp_") else each.panel,
                metavar=files.get(each.name),
            )
            for each in found
        ]


def train(
    recipe: RecipeName,
    corpus: CorpusName,
    options: TrainingOptionGroup,
    reading: CorpusOptions,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the model.", show_default=False)],
    validation: Annotated[
        str | None, typer.Option(metavar="CORPUS", help="Validation data for the loss, read like the corpus.")
    ] = None,
    changes: RecipeChanges = None,
) -> None:
    """Train a model: target, reference or shadow, with or without differential privacy.

    The same command resumes a training that was stopped. `recollect score` and all audits load the folder, and so does
    plain transformers after `import recollect.models.architectures`. Its README.md is the model card and curve.json the
    learning curve. With --follow-exposure, exposure is measured after every epoch, and `recollect exposure` draws it.
    """
    from recollect import api
    from recollect.pipeline.plans.calls import name_call_recipe

    name_call_recipe(recipe, changes)  # refused at once, and not when the corpus has been read
    texts = reading.read(corpus)
    name = Path(recipe).stem
    console.say(f"Training {name} on {len(texts):,} records. Run the same command again to resume.")
    with console.show_progress(f"training {name}") as shown:
        api.train(
            recipe,
            texts,
            out,
            set=changes,
            progress=lambda moment: shown(moment.step, moment.steps, _format_training_note(moment)),
            validation=None if validation is None else reading.read(validation),
            **options,
        )
    _report_training(name, out)


def _format_training_note(moment: TrainingProgress) -> str:
    """What is shown beside the progress bar of `recollect train`."""
    return f"epoch {moment.epoch} of {moment.epochs}, loss {moment.loss:.3f}"


def _report_training(name: str, out: Path) -> None:
    """Say what was trained."""
    from recollect.files import read_json

    card = read_json(out / "card.json")
    rows = [[name.replace("_", " "), str(value)] for name, value in card["curve"].items()]
    stated = card["privacy"]
    rows.append(["privacy", "none" if stated is None else f"{stated['guarantee']} per {stated['unit']}"])
    rows.append(["folder", str(out)])
    console.print_table(f"Trained {name}", ["what", "found"], rows)
