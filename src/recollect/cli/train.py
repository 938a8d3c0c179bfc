"""`recollect train`: a recipe and a corpus become a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli import console
from recollect.cli.options import CorpusName, CorpusOptions, RecipeChanges, Seed

if TYPE_CHECKING:
    from recollect.recipes.loop import TrainingProgress
    from recollect.recipes.recipe import Recipe

RecipeName = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE", help="A built-in recipe (`recollect list` names them) or a YAML file.", show_default=False
    ),
]
_PRIVACY = "Differential privacy"


def train(
    recipe: RecipeName,
    corpus: CorpusName,
    reading: CorpusOptions,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the model goes.", show_default=False)],
    validation: Annotated[
        str | None, typer.Option(metavar="CORPUS", help="What the loss is watched on, read like the corpus.")
    ] = None,
    changes: RecipeChanges = None,
    canaries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .canaries.json of the corpus: its tokens go into the vocabulary."),
    ] = None,
    follow_exposure: Annotated[
        bool, typer.Option("--follow-exposure", help="Measure the canaries after each epoch, beside the losses.")
    ] = False,
    cohorts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A cohorts.json that says which users train which model.")
    ] = None,
    cohort: Annotated[str, typer.Option(metavar="NAME", help="Which of its models to train.")] = "target",
    dp_epsilon: Annotated[
        float | None, typer.Option(help="Train with this much privacy loss at most.", rich_help_panel=_PRIVACY)
    ] = None,
    dp_noise: Annotated[
        float | None, typer.Option(help="Or state the noise, in multiples of the clip.", rich_help_panel=_PRIVACY)
    ] = None,
    dp_unit: Annotated[
        str | None, typer.Option(help="Whose influence is bounded: record or user.", rich_help_panel=_PRIVACY)
    ] = None,
    seed: Seed = 0,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads to compute with. (default: all cores)")] = None,
) -> None:
    """Train a model: target, reference or shadow, with or without differential privacy.

    The same command again goes on where it was stopped. The folder loads with `recollect score`, and with plain
    transformers after `import recollect.models.architectures`; its README.md is the model card, curve.json the learning
    curve, with --follow-exposure also of exposure, which the report of `recollect exposure` draws.
    """
    from recollect.pipeline.preparation import TrainingOptions, train_model
    from recollect.recipes.recipe_file import load_recipe

    chosen = load_recipe(recipe, changes or [])
    wanted = build_privacy_settings(dp_epsilon, dp_noise, dp_unit, already=chosen.private)
    chosen = load_recipe(recipe, [*(changes or []), *wanted])
    texts = reading.read(corpus)
    how = TrainingOptions(
        validation=None if validation is None else reading.read(validation),
        canaries=canaries,
        follow_exposure=follow_exposure,
        cohorts=cohorts,
        cohort=cohort,
        seed=seed,
        threads=threads,
    )
    console.say(f"Training {chosen.name} on {len(texts):,} records. Run the same command again to resume.")
    with console.show_progress(f"training {chosen.name}") as shown:
        train_model(
            chosen, texts, out, how, progress=lambda moment: shown(moment.step, moment.steps, _format_note(moment))
        )
    _report(chosen, out)


def build_privacy_settings(epsilon: float | None, noise: float | None, unit: str | None, *, already: bool) -> list[str]:
    """The privacy options as settings of a recipe.

    A private recipe keeps its unit unless told otherwise, and whichever of ε and noise is given replaces the other.

    >>> build_privacy_settings(3.0, None, None, already=False)
    ['privacy.epsilon=3.0', 'privacy.noise=null', 'privacy.unit=record']
    """
    wanted = {"epsilon": epsilon, "noise": noise} if (epsilon, noise) != (None, None) else {}
    chosen = unit or ("record" if wanted and not already else None)
    settings = [f"privacy.{name}={'null' if value is None else value}" for name, value in wanted.items()]
    return settings if chosen is None else [*settings, f"privacy.unit={chosen}"]


def _format_note(moment: TrainingProgress) -> str:
    """What is said beside the bar."""
    return f"epoch {moment.epoch} of {moment.epochs}, loss {moment.loss:.3f}"


def _report(recipe: Recipe, out: Path) -> None:
    """Say what was trained."""
    from recollect.files import read_json

    card = read_json(out / "card.json")
    rows = [[name.replace("_", " "), str(value)] for name, value in card["curve"].items()]
    stated = card["privacy"]
    rows.append(["privacy", "none" if stated is None else f"{stated['guarantee']} per {stated['unit']}"])
    rows.append(["folder", str(out)])
    console.print_table(f"Trained {recipe.name}", ["what", "found"], rows)
