"""The model card: how a model came to be, as `card.json` for programs and `README.md` for people."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from recollect.corpora.corpus import Corpus
from recollect.files import write_text
from recollect.models.loading.model_cards import README, write_card
from recollect.recipes.description import describe_recipe
from recollect.recipes.recipe import Recipe, Task
from recollect.recipes.training.loop import Curve

_PIPELINES: dict[Task, str] = {
    "causal": "text-generation",
    "masked": "fill-mask",
    "seq2seq": "text2text-generation",
    "classifier": "text-classification",
}


@dataclass(frozen=True, kw_only=True)
class Card:
    """How a model came to be."""

    recipe: Recipe
    seed: int
    threads: int
    corpus: Mapping[str, Any]
    """Name, digest, size and users of what it was trained on."""
    validation: Mapping[str, Any] | None
    """The same of what its loss was watched on."""
    cohort: Mapping[str, Any] | None
    """Name, unit, size and digest of the members, who are listed in `members.json`."""
    curve: Curve
    privacy: Mapping[str, Any] | None
    """Unit, (ε, δ) and all that they rest on; None if nothing bounds what one record may change."""
    reading: Mapping[str, Any]
    """What the loader must know: `start_symbol` of language models, `input_mean` and `input_std` of arrays."""

    def write(self, folder: Path) -> None:
        """Write `README.md`, then `card.json`: whoever finds the latter finds a finished model."""
        write_text(folder / README, self.to_markdown())
        write_card(folder, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """What is in `card.json`."""
        return {
            "recipe": {**self.recipe.model_dump(mode="json"), "summary": describe_recipe(self.recipe)},
            "recipe_digest": self.recipe.digest,
            "task": self.recipe.task,
            "seed": self.seed,
            "threads": self.threads,
            "corpus": self.corpus,
            "validation": self.validation,
            "cohort": self.cohort,
            "privacy": self.privacy,
            "curve": self.summarise_curve(),
            "versions": {
                **{name: version(name) for name in ("recollect", "torch", "transformers")},
                "python": platform.python_version(),
            },
            **self.reading,
        }

    def summarise_curve(self) -> dict[str, Any]:
        """The curve in a few numbers; under differential privacy without the training loss, which is exact."""
        exact = () if self.privacy is None else ("training_loss",)
        return {name: value for name, value in summarise_curve(self.curve).items() if name not in exact}

    def to_markdown(self) -> str:
        """What is in `README.md`."""
        recipe, curve = self.recipe, self.summarise_curve()
        pipeline = "image-classification" if recipe.tokenizer is None else _PIPELINES[recipe.task]
        metadata = {"library_name": "transformers", "pipeline_tag": pipeline, "tags": ["recollect", recipe.name]}
        private = (
            "None: nothing bounds what one record may have changed."
            if self.privacy is None
            else f"{self.privacy['guarantee']} per {self.privacy['unit']}, accountant {self.privacy['accountant']}"
        )
        cohort = "" if self.cohort is None else f" (cohort {self.cohort['name']}, listed in `members.json`)"
        return (
            f"---\n{yaml.safe_dump(metadata, sort_keys=False)}---\n\n"
            f"# {recipe.name}\n\n{describe_recipe(recipe)}.\n\n"
            "| | |\n|---|---|\n"
            f"| Trained on | {self.corpus['size']} records of {self.corpus['users']} users{cohort} |\n"
            f"| Epochs | {curve['epochs']} |\n"
            f"{self._format_loss_rows(curve)}"
            f"| Differential privacy | {private} |\n"
            f"| Seed | {self.seed} |\n\n"
            "Load it with `recollect.load_model`, or with the Auto classes of `transformers` after "
            "`import recollect.models.architectures`.\nThe recipe, the digest of the data and the versions are in "
            "`card.json`, the learning curve in `curve.json`.\n"
        )

    def _format_loss_rows(self, curve: Mapping[str, Any]) -> str:
        """The losses that are known, as rows of the table."""
        unit = "nats" if self.recipe.task == "classifier" else "nats per token"
        names = {"training_loss": "Training loss", "validation_loss": "Validation loss"}
        return "".join(f"| {title} | {curve[name]:.3f} {unit} |\n" for name, title in names.items() if name in curve)


def summarise_curve(curve: Curve) -> dict[str, Any]:
    """The learning curve on a model card: its last epoch and its best, in a few numbers; without losses not known.

    Losses have four decimals; `curve.json` has all.
    """
    empty_row = {"epoch": 0, "steps": 0, "training_loss": None, "validation_loss": None}
    last = curve[-1] if curve else empty_row  # a snapshot may come before the end of the first epoch
    validation_losses = [row["validation_loss"] for row in curve if row["validation_loss"] is not None]
    losses = {
        "training_loss": last["training_loss"],
        "validation_loss": last["validation_loss"],
        "best_validation_loss": min(validation_losses, default=None),
    }
    return {
        "epochs": last["epoch"],
        "steps": last["steps"],
        **{name: round(loss, 4) for name, loss in losses.items() if loss is not None},
        "seconds": round(sum(row["seconds"] for row in curve), 1),
    }


def describe_corpus(corpus: Corpus) -> dict[str, Any]:
    """A corpus on a card: no text, only what identifies it."""
    found = corpus.summary
    return {"name": corpus.name, "digest": found.digest, "size": found.size, "users": found.users}
