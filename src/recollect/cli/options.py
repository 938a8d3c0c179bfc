"""Options that many verbs share, each written once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.cli.console import say

if TYPE_CHECKING:
    from recollect.corpora.corpus import Corpus
    from recollect.execution.local import LocalBackend
    from recollect.models.model import Model
    from recollect.pipeline.sources import NamedCorpus, NamedModel

ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A model's folder, hf:NAME[@REVISION], BASE+ADAPTER, recorded:DIR, or python:module:factory.",
        show_default=False,
    ),
]
CorpusName = Annotated[
    str,
    typer.Argument(
        metavar="CORPUS",
        help="A .jsonl, .csv, .tsv, .parquet, .txt or .npz file (also .gz, .zst), a folder or glob, or hf:name:split.",
        show_default=False,
    ),
]
Work = Annotated[
    Path, typer.Option("--work", metavar="DIR", help="Where answers and trained models are kept, for all runs.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON on standard output; all else goes to standard error.")
]
Seed = Annotated[int, typer.Option("--seed", help="All randomness comes from this number.")]
ShowText = Annotated[
    bool, typer.Option("--show-text", help="Show text from corpora and secrets as it is, instead of masked.")
]
RecipeChanges = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SETTING=VALUE", help="Change a setting of the recipe: --set units=200."),
]

_CORPUS = "How the corpus is read"
_QUESTION = "How the model is asked"


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """How the corpus is read."""

    user_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose record it is. (default: user)", rich_help_panel=_CORPUS)
    ] = None
    text_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The text. (default: text)", rich_help_panel=_CORPUS)
    ] = None
    source_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a pair. (default: source)", rich_help_panel=_CORPUS)
    ] = None
    target_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a pair. (default: target)", rich_help_panel=_CORPUS)
    ] = None
    label_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The class. (default: label)", rich_help_panel=_CORPUS)
    ] = None
    id_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The record's name. (default: id, else its number)", rich_help_panel=_CORPUS),
    ] = None
    file_format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="jsonl, csv, tsv, parquet, txt or npz, whatever the suffix says.",
            rich_help_panel=_CORPUS,
        ),
    ] = None
    running_text: Annotated[
        bool,
        typer.Option("--running-text", help="A .txt file is one text, not a record per line.", rich_help_panel=_CORPUS),
    ] = False
    split: Annotated[
        Literal["sentences", "windows"] | None,
        typer.Option(help="Cut long texts into records that keep their user.", rich_help_panel=_CORPUS),
    ] = None
    split_words: Annotated[int, typer.Option(help="Words in a window of --split windows.", rich_help_panel=_CORPUS)] = (
        50
    )
    split_minimum: Annotated[
        int, typer.Option(help="Pieces of fewer words are dropped and counted.", rich_help_panel=_CORPUS)
    ] = 1
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Drop and count bad records instead of stopping.", rich_help_panel=_CORPUS),
    ] = False

    def named(self, ref: str) -> NamedCorpus:
        """The corpus of that name, to be read as these options say."""
        from recollect.corpora import Columns, Split
        from recollect.pipeline.sources import NamedCorpus

        names = {name: getattr(self, f"{name}_column") for name in ("user", "text", "source", "target", "label", "id")}
        split = self.split and Split(by=self.split, words=self.split_words, minimum=self.split_minimum)
        return NamedCorpus(
            ref=ref,
            columns=Columns(**{name: column for name, column in names.items() if column is not None}),
            format=self.file_format,
            split=split or None,
            skip_bad=self.skip_bad,
            running_text=self.running_text,
        )

    def read(self, ref: str) -> Corpus:
        """The corpus of that name, read as these options say; what was dropped is said."""
        from recollect.corpora.faults import describe_reason

        corpus = self.named(ref).read()
        for reason, count in corpus.skipped.items():
            say(f"{corpus.name}: dropped {count:,} ({describe_reason(reason)})")
        return corpus


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """How the model is asked."""

    kind: Annotated[
        Literal["causal", "masked", "seq2seq", "classifier"] | None,
        typer.Option(
            "--as", help="What the model is, where its configuration does not say.", rich_help_panel=_QUESTION
        ),
    ] = None
    window: Annotated[
        int | None,
        typer.Option(help="Tokens read at once. (default: as many as the model can)", rich_help_panel=_QUESTION),
    ] = None
    patterns: Annotated[
        int, typer.Option(help="Masked models: random mask patterns per record.", rich_help_panel=_QUESTION)
    ] = 20
    one_by_one: Annotated[
        bool,
        typer.Option("--one-by-one", help="Masked models: hide every token once, alone.", rich_help_panel=_QUESTION),
    ] = False
    mask_seed: Annotated[
        int, typer.Option(help="Masked models: the seed of the patterns.", rich_help_panel=_QUESTION)
    ] = 0
    precision: Annotated[
        Literal["float32", "float64", "float16", "bfloat16"],
        typer.Option(help="What the model computes in.", rich_help_panel=_QUESTION),
    ] = "float32"
    device: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE", help="cpu, cuda, cuda:1 … (default: the best there is)", rich_help_panel=_QUESTION
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes at once; they share the cores. (default: one asks, as many train as a trial finds best)",
            rich_help_panel=_QUESTION,
        ),
    ] = None

    def named(self, ref: str) -> NamedModel:
        """The model of that name, to be asked as these options say."""
        from recollect.models.model import Question
        from recollect.pipeline.sources import NamedModel

        question = Question(
            window=self.window,
            patterns=self.patterns,
            one_by_one=self.one_by_one,
            mask_seed=self.mask_seed,
            precision=self.precision,
        )
        return NamedModel(ref=ref, question=question, kind=self.kind, device=self.device)

    def load(self, ref: str) -> Model:
        """The model itself."""
        return self.named(ref).load()

    def backend(self) -> LocalBackend:
        """The processes that ask."""
        from recollect.execution.local import LocalBackend

        return LocalBackend(workers=self.workers or 1)
