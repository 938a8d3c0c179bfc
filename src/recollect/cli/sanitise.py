"""`recollect sanitise`: take out of a corpus what a model would memorise."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from recollect.cli import console, outputs
from recollect.cli.options import AsJson, CorpusName, CorpusOptions, RecipeChanges, Seed, Work
from recollect.errors import PlanError

if TYPE_CHECKING:
    from recollect.corpora.corpus import Corpus
    from recollect.corpora.sanitise import Sanitised

By = Literal["format", "duplicates", "difference"]
_FORMAT, _DUPLICATES, _DIFFERENCE = "By format", "By duplicates", "By difference"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ways:
    """The settings of the three ways to sanitise."""

    format: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="What secrets look like, as for `recollect plant`; may be given several times.",
            rich_help_panel=_FORMAT,
        ),
    ] = None
    mask: Annotated[
        bool, typer.Option("--mask", help="Mask what matches and keep the records.", rich_help_panel=_FORMAT)
    ] = False
    passage: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Also remove what shares N words in a row with before.", rich_help_panel=_DUPLICATES
        ),
    ] = None
    recipe: Annotated[
        str | None,
        typer.Option(metavar="RECIPE", help="How the two models are trained.", rich_help_panel=_DIFFERENCE),
    ] = None
    changes: RecipeChanges = None
    share: Annotated[
        float | None,
        typer.Option(help="Which share of the records is removed. (default: 0.1)", rich_help_panel=_DIFFERENCE),
    ] = None
    per: Annotated[
        Literal["symbol", "record"] | None,
        typer.Option(
            help="Log-perplexity of the mean symbol, or of the whole record as in the paper. (default: symbol)",
            rich_help_panel=_DIFFERENCE,
        ),
    ] = None

    def check(self, by: By) -> None:
        """Refuse settings of another way, and settings that are missing."""
        belong = {"format": ("format", "mask"), "duplicates": ("passage",)}
        belong["difference"] = ("recipe", "changes", "share", "per")
        for way, names in belong.items():
            for name in names:
                if way != by and getattr(self, name):
                    option = "set" if name == "changes" else name
                    raise PlanError(f"--{option} is a setting of --by {way}.", do=f"Leave it out, or say --by {way}.")
        if by == "format" and not self.format:
            raise PlanError("--by format needs a format.", do="Say what secrets look like: --format 'pin {digits:4}'.")
        if by == "difference" and not self.recipe:
            raise PlanError("--by difference trains two models.", do="Name a recipe: --recipe char-lstm.")


def sanitise(
    corpus: CorpusName,
    reading: CorpusOptions,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="The sanitised corpus, .jsonl or .jsonl.gz.", show_default=False),
    ],
    by: Annotated[By, typer.Option(help="What is taken out.", show_default=False)],
    ways: Ways,
    work: Work = Path(".recollect"),
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Take out of a corpus what a model would memorise; no way of doing so gives a guarantee.

    By format: records that hold a filled-in format anywhere. By duplicates: all copies but the first. By difference:
    the records that two models, each trained on one half, find most differently likely: only one of them saw them.

    Beside OUT.jsonl, OUT.changes.json names each record that was removed or masked, and why.
    """
    ways.check(by)
    chosen = _way(by, ways, work, seed)
    outputs.refuse_output(out, corpus, reading.file_format)
    texts = reading.read(corpus)
    found: Sanitised = chosen(texts)
    outputs.write_with_progress(found.corpus, out, total=len(texts) - found.removed)
    _report(found, texts, out, as_json=json)


def _way(by: By, ways: Ways, work: Path, seed: int) -> Any:
    """The function that sanitises; everything is checked before the corpus is read."""
    if by == "format":
        from recollect.corpora.canaries.formats import parse_format
        from recollect.corpora.sanitise import by_format

        formats = [parse_format(written) for written in ways.format or []]
        return lambda texts: by_format(texts, formats, mask=ways.mask)
    if by == "duplicates":
        from recollect.corpora.repetitions import by_duplicates

        return lambda texts: by_duplicates(texts, passage=ways.passage)
    from recollect.pipeline.sanitising import ByDifference
    from recollect.recipes.reading import load_recipe

    difference = ByDifference(
        recipe=load_recipe(str(ways.recipe), ways.changes or []),
        share=0.1 if ways.share is None else ways.share,
        per=ways.per or "symbol",
        seed=seed,
    )

    def sanitised(texts: Corpus) -> Sanitised:
        console.say("Training two models on the halves. Run the same command again to resume.")
        with console.stages() as progress:
            return difference(texts, work, progress=progress)

    return sanitised


def _report(found: Sanitised, texts: Corpus, out: Path, *, as_json: bool) -> None:
    """Write and say what was changed and why."""
    from recollect.files import write_json

    beside = outputs.beside(out, "changes.json")
    write_json(beside, [dataclasses.asdict(change) for change in found.changes])
    facts = {
        "corpus": str(out),
        "changes": str(beside),
        "records": len(texts),
        "removed": found.removed,
        "masked": len(found.changes) - found.removed,
        "reasons": found.counts,
    }
    if as_json:
        console.print_json(facts)
        return
    rows = [[reason, f"{count:,}"] for reason, count in found.counts.items()] or [["nothing was found", "0"]]
    title = f"Of {len(texts):,} records {found.removed:,} were removed and {facts['masked']:,} masked"
    console.print_table(title, ["because it", "records"], rows)
    console.say(f"Sanitised corpus: {out}. Which records, and why: {beside}.")
