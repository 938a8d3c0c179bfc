"""Options that many verbs share, each declared once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.console import say
from recollect.cli.declared_fields import DeclaredField, list_fields
from recollect.cli.verb_wrapper import VerbOptionGroup

if TYPE_CHECKING:
    from recollect.corpora.corpus import Corpus

MODEL_HELP = (
    r"PATH, hf:NAME\[@REV], BASE+ADAPTER, FILE.gguf, recorded:DIR, python:module:factory, or http(s)://HOST/v1#NAME."
)
CORPUS_HELP = (
    "A .jsonl, .csv, .tsv, .parquet, .txt or .npz (also .gz, .zst), a folder, a glob, s3://…, or hf:NAME:SPLIT."
)
ModelName = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP, show_default=False)]
CorpusName = Annotated[str, typer.Argument(metavar="CORPUS", help=CORPUS_HELP, show_default=False)]
RUN_PANEL = "The run"
SERVER_PANEL = "Models behind a server"
Work = Annotated[
    Path,
    typer.Option(
        "--work",
        metavar="DIR",
        help="Work folder, where scores and trained models are kept for all runs.",
        rich_help_panel=RUN_PANEL,
    ),
]
SharedWork = Annotated[
    bool,
    typer.Option(
        "--shared-work",
        help="Use a work folder that belongs to another user, and trust the scores and models in it.",
        rich_help_panel=RUN_PANEL,
    ),
]
WorkLimitGb = Annotated[
    float | None,
    typer.Option(
        "--work-limit-gb",
        metavar="NUMBER",
        help="Maximum size of the work folder in gigabytes; once it is reached, nothing new is started.",
        rich_help_panel=RUN_PANEL,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print the result as JSON on standard output; everything else goes to standard error.",
        rich_help_panel=RUN_PANEL,
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", metavar="INTEGER", help="Seed of all random numbers.", rich_help_panel=RUN_PANEL),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        metavar="INTEGER",
        help="Number of processes; by default one for scoring, and for training as many as a short trial finds best.",
        rich_help_panel=RUN_PANEL,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        metavar="INTEGER",
        help="Threads per process; by default the cores are divided among the processes.",
        rich_help_panel=RUN_PANEL,
    ),
]
BackendName = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="local|ray[:HOST:6379]",
        help="Where models are trained and scored: this machine, or a Ray cluster that it belongs to.",
        rich_help_panel=RUN_PANEL,
    ),
]
ShowText = Annotated[
    bool, typer.Option("--show-text", help="Show text from corpora and secrets as it is, instead of masked.")
]
RealNames = Annotated[
    bool,
    typer.Option(
        "--real-names",
        help="Show users and records by their own ids instead of pseudonyms. Result files and --json always do.",
        rich_help_panel=RUN_PANEL,
    ),
]
Named = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="ID",
        help="Show this user or record by its own id instead of a pseudonym. May be repeated.",
        rich_help_panel=RUN_PANEL,
    ),
]
Junit = Annotated[
    Path | None,
    typer.Option(
        "--junit",
        metavar="FILE",
        help="Write limits and outcomes as JUnit XML, which CI systems show beside tests.",
        rich_help_panel=RUN_PANEL,
    ),
]
RecipeChanges = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SETTING=VALUE", help="Change a setting of the recipe: --set training.epochs=3."),
]


class CorpusOptions(VerbOptionGroup):
    """How the corpus is read."""

    @classmethod
    @cache
    def list_fields(cls) -> list[DeclaredField]:
        """The fields of a reference to a corpus."""
        from recollect.pipeline.plans.refs import CorpusRef

        return list_fields(CorpusRef, skip=frozenset({"corpus"}), panel="How the corpus is read")

    def read(self, name: str) -> Corpus:
        """The corpus of that name, read as these options say; reports what was dropped."""
        from recollect.corpora.readers.faults import describe_reason
        from recollect.pipeline.plans.refs import CorpusRef
        from recollect.pipeline.sources import build_object_reference

        corpus = build_object_reference(CorpusRef, {"corpus": name, **self}).read()
        for reason, count in corpus.skipped.items():
            say(f"{corpus.name}: dropped {count:,} ({describe_reason(reason)})")
        return corpus


class ModelOptions(VerbOptionGroup):
    """How the model is scored."""

    @classmethod
    @cache
    def list_fields(cls) -> list[DeclaredField]:
        """The fields of a reference to a model."""
        from recollect.pipeline.plans.refs import SERVER_OPTIONS, ModelRef

        fields = list_fields(ModelRef, skip=frozenset({"model"}), panel="How the model is scored")
        return [replace(each, panel=SERVER_PANEL) if each.name in SERVER_OPTIONS else each for each in fields]
