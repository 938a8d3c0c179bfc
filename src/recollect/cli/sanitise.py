"""`recollect sanitise`: take out of a corpus what a model would memorise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.cli import console
from recollect.cli.shared_options import AsJson, CorpusName, CorpusOptions, RecipeChanges, Seed, Work

if TYPE_CHECKING:
    from recollect.corpora.sanitisation import Sanitisation

By = Literal["format", "duplicates", "difference"]
_FORMAT, _DUPLICATES, _DIFFERENCE = "By format", "By duplicates", "By difference"


Out = Annotated[
    Path, typer.Option("--out", metavar="FILE", help="The sanitised corpus, .jsonl or .jsonl.gz.", show_default=False)
]
Method = Annotated[By, typer.Option(help="What is removed.", show_default=False)]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="What secrets look like, as for `recollect plant`; may be given several times.",
        rich_help_panel=_FORMAT,
    ),
]
Mask = Annotated[bool, typer.Option("--mask", help="Mask what matches and keep the records.", rich_help_panel=_FORMAT)]
Passage = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Also remove records that share N consecutive words with an earlier one.",
        rich_help_panel=_DUPLICATES,
    ),
]
RecipeName = Annotated[
    str | None, typer.Option(metavar="RECIPE", help="How the two models are trained.", rich_help_panel=_DIFFERENCE)
]
Share = Annotated[
    float | None,
    typer.Option(help="Share of the records that is removed. (default: 0.1)", rich_help_panel=_DIFFERENCE),
]
Per = Annotated[
    Literal["token", "record"] | None,
    typer.Option(
        help="Log-perplexity per token, or of the whole record as in the paper. (default: token)",
        rich_help_panel=_DIFFERENCE,
    ),
]


def sanitise(
    corpus: CorpusName,
    reading: CorpusOptions,
    out: Out,
    by: Method,
    format: Formats = None,
    mask: Mask = False,
    passage: Passage = None,
    recipe: RecipeName = None,
    changes: RecipeChanges = None,
    share: Share = None,
    per: Per = None,
    work: Work = Path(".recollect"),
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Remove from a corpus what a model would memorise; no method guarantees that nothing is left.

    By format: records that contain text of this format. By duplicates: all copies of a record but the first. By
    difference: two models are trained, each on one half of the corpus, and the records whose likelihood under the two
    differs most are removed, because the model that was trained on them memorised them.

    OUT.changes.json, beside OUT.jsonl, lists each record that was removed or masked, and why.
    """
    from recollect import api

    settings = {"format": format, "mask": mask, "passage": passage, "share": share, "per": per}
    if by == "difference":
        console.say("Training two models on the halves. Run the same command again to resume.")
    with console.show_stages() as progress:
        found = api.sanitise(
            corpus,
            by=by,
            out=out,
            work=work,
            reading=reading,
            progress=progress,
            **settings,
            recipe=recipe,
            set=changes,
            seed=seed,
        )
    _report_sanitising(found, out, as_json=json)


def _report_sanitising(found: Sanitisation, out: Path, *, as_json: bool) -> None:
    """Say what was changed in a sanitised corpus and why."""
    from recollect.pipeline.preparation import get_sibling_path

    records, beside = len(found.corpus) + found.removed, get_sibling_path(out, "changes.json")
    facts = {
        "corpus": str(out),
        "changes": str(beside),
        "records": records,
        "removed": found.removed,
        "masked": len(found.changes) - found.removed,
        "reasons": found.counts,
    }
    if as_json:
        console.print_json(facts)
        return
    rows = [[reason, f"{count:,}"] for reason, count in found.counts.items()] or [["nothing was found", "0"]]
    title = f"Of {records:,} records {found.removed:,} were removed and {facts['masked']:,} masked"
    console.print_table(title, ["because it", "records"], rows)
    console.say(f"Sanitised corpus: {out}. Which records, and why: {beside}.")
