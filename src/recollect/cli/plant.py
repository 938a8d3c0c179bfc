"""`recollect plant`: made-up secrets go into a corpus, with a manifest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from recollect.cli import console, outputs
from recollect.cli.auditing import TrainingOptions
from recollect.cli.options import AsJson, CorpusName, CorpusOptions, RecipeChanges, Seed, ShowText
from recollect.errors import PlanError

if TYPE_CHECKING:
    from recollect.corpora.canaries.manifest import Canaries
    from recollect.recipes.surviving import Check, Survival

MOST_ROWS = 40
"""Secrets that are listed in a terminal; the manifest and --json have all."""


def plant(
    corpus: CorpusName,
    reading: CorpusOptions,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="What secrets look like: 'my pin is {digits:6}'. Also {letters:N}, {hex:N}, {card}, "
            "{choice:a|b}, {words:N:FILE}.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The planted corpus, .jsonl or .jsonl.gz.", show_default=False)
    ],
    secrets: Annotated[int, typer.Option(help="How many secrets for each number of repetitions.")] = 10,
    repeat: Annotated[str, typer.Option(metavar="N,N,…", help="How many times each of them is planted.")] = "1",
    controls: Annotated[int, typer.Option(help="How many more are drawn and never planted.")] = 100,
    source_format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Pairs: what stands in the source, with the same slots.")
    ] = None,
    inside: Annotated[
        bool, typer.Option("--inside", help="Plant inside existing records, not as records of their own.")
    ] = False,
    users: Annotated[Literal["new", "existing"], typer.Option(help="Who owns records that are planted.")] = "new",
    unique_prefix: Annotated[
        int, typer.Option(metavar="N", help="N random letters before each secret, other ones for each.")
    ] = 0,
    name: Annotated[str, typer.Option(help="What ids of secrets and planted records begin with.")] = "canary",
    recipe: Annotated[
        str | None, typer.Option(metavar="RECIPE", help="Check what training by this recipe would make of each secret.")
    ] = None,
    changes: RecipeChanges = None,
    show_text: ShowText = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Plant made-up secrets in a corpus, to measure after training how deep they sit.

    Beside OUT.jsonl, OUT.canaries.json tells which secrets were planted how often and which were held back as
    controls; `recollect train --canaries` and `recollect exposure --canaries` read it. Both files are readable by their
    owner only.
    """
    from recollect.corpora.canaries.planting import Planting
    from recollect.corpora.canaries.planting import plant as planted_in

    planting = Planting(
        format=format,
        source_format=source_format,
        secrets=secrets,
        repeat=_numbers(repeat),
        controls=controls,
        inside=inside,
        unique_prefix=unique_prefix,
        users=users,
        name=name,
        seed=seed,
    )
    space = planting.parsed.size
    chosen = TrainingOptions(recipe=recipe, changes=changes).load()
    outputs.refuse_output(out, corpus, reading.file_format)
    texts = reading.read(corpus)
    planted, manifest = planted_in(texts, planting)
    check = None
    if chosen is not None:
        from recollect.recipes.surviving import surviving

        console.say(f"Preparing the planted corpus as {chosen.name} would …")
        check = surviving(chosen, planted, manifest, seed=seed)
    plantings = sum(canary.planted for canary in manifest.planted)
    outputs.write_with_progress(planted, out, total=len(texts) + (0 if inside else plantings))
    manifest.save(outputs.beside(out, "canaries.json"))
    facts = {
        "corpus": str(out),
        "canaries": str(outputs.beside(out, "canaries.json")),
        "format": format,
        "space": space,
        "records": len(texts) + (0 if inside else plantings),
        "plantings": plantings,
        "controls": len(manifest.controls),
    }
    _report(facts, _rows(manifest, check, show_text=show_text), check, as_json=json)


def _numbers(written: str) -> tuple[int, ...]:
    """The numbers of repetitions.

    >>> _numbers("1,2, 5")
    (1, 2, 5)
    """
    try:
        return tuple(int(number) for number in written.split(","))
    except ValueError:
        raise PlanError(f"--repeat is {written!r}.", do="Give whole numbers with commas between: 1,2,5,10.") from None


def _rows(manifest: Canaries, check: Check | None, *, show_text: bool) -> list[dict[str, Any]]:
    """What is said of each planted secret."""
    from recollect.results.masking import shown

    fates = {} if check is None else {survival.secret: survival for survival in check.secrets}
    rows = []
    for canary in manifest.planted:
        row = {"secret": canary.id, "planted": canary.planted, "text": shown(canary.text, show_text=show_text)}
        rows.append({**row, "training": _facts(fates[canary.id])} if fates else row)
    return rows


def _facts(survival: Survival) -> dict[str, Any]:
    """What becomes of a secret in training."""
    counts = {name: getattr(survival, name) for name in ("unknown", "whole", "carried", "cut", "lost")}
    return {"verdict": survival.verdict, **counts}


def _report(facts: dict[str, Any], rows: list[dict[str, Any]], check: Check | None, *, as_json: bool) -> None:
    """Say what was planted, and what would become of it."""
    if as_json:
        unknown = {} if check is None else {"unknown_controls": list(check.unknown_controls)}
        console.print_json({**facts, "secrets": rows, **unknown})
    else:
        title = f"{len(rows)} secrets planted {facts['plantings']} times, {facts['controls']} controls never"
        columns = ["secret", "planted", "text", *(["in training"] if check else [])]
        console.print_table(title, columns, [_cells(row) for row in rows[:MOST_ROWS]])
        if len(rows) > MOST_ROWS:
            console.say(f"… and {len(rows) - MOST_ROWS} more.")
    for line in _warnings(rows, check):
        console.say(line)
    console.say(f"One of {facts['space']:,} each. Planted corpus: {facts['corpus']}. Secrets: {facts['canaries']}.")


def _cells(row: dict[str, Any]) -> list[str]:
    """A row of the table."""
    cells = [row["secret"], str(row["planted"]), row["text"]]
    if "training" not in row:
        return cells
    counts = {"unknown": "unknown symbols", "whole": "whole", "carried": "carried", "cut": "cut in two", "lost": "lost"}
    found = [f"{row['training'][name]} {word}" for name, word in counts.items() if row["training"][name]]
    return [*cells, f"{row['training']['verdict']}: {', '.join(found)}"]


def _warnings(rows: list[dict[str, Any]], check: Check | None) -> Iterator[str]:
    """What a reader should know before training."""
    if check is None:
        return
    weak = [row for row in rows if row["training"]["verdict"] != "survives"]
    if weak:
        yield f"{len(weak)} of {len(rows)} secrets would not reach the model whole in all their copies."
    if any(row["training"]["carried"] for row in rows):
        yield "Carried: a border of training sequences runs through the copy, but the model's state goes on across it."
    if check.unknown_controls:
        yield f"{len(check.unknown_controls)} controls hold symbols that the vocabulary would not know."
