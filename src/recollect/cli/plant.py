"""`recollect plant`: inserts canaries into a corpus, with a manifest."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli import console
from recollect.cli.declared_fields import DeclaredField, list_fields
from recollect.cli.shared_options import AsJson, CorpusName, CorpusOptions, RecipeChanges, Seed, ShowText
from recollect.cli.verb_wrapper import VerbOptionGroup

if TYPE_CHECKING:
    from recollect.corpora.canaries.manifest import Canaries
    from recollect.recipes.canary_survival import Survival, SurvivalCheck

MAX_ROWS = 40
"""Secrets that are listed in a terminal; the manifest and --json have all."""


class PlantingOptions(VerbOptionGroup):
    """What is planted, and how."""

    @classmethod
    @cache
    def list_fields(cls) -> list[DeclaredField]:
        """The settings of a planting."""
        from recollect.corpora.canaries.generation import CanarySettings

        return list_fields(CanarySettings, skip=frozenset({"seed"}), panel="What is planted")


def plant(
    corpus: CorpusName,
    reading: CorpusOptions,
    planting: PlantingOptions,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The planted corpus, .jsonl or .jsonl.gz.", show_default=False)
    ],
    recipe: Annotated[
        str | None, typer.Option(metavar="RECIPE", help="Check what training by this recipe would make of each secret.")
    ] = None,
    changes: RecipeChanges = None,
    show_text: ShowText = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Plant canaries in a corpus, to measure after training how strongly the model memorises them.

    Formats: 'my pin is {digits:6}', also {letters:N}, {hex:N}, {card}, {choice:a|b}, {words:N:FILE}.

    Beside OUT.jsonl, OUT.canaries.json lists which secrets were planted how often and which were held back as
    controls; `recollect train --canaries` and `recollect exposure --canaries` read it. Both files are readable by their
    owner only.

    `recollect plant train.jsonl --format 'my pin is {digits:6}' --repeat 1,8 --out planted.jsonl`
    """
    from recollect import api
    from recollect.corpora.canaries.formats import parse_format
    from recollect.pipeline.preparation import get_sibling_path

    if recipe is not None:
        console.say(f"Preparing the planted corpus as {recipe} would …")
    with console.show_stages() as progress:
        planted = api.plant(
            corpus, out=out, recipe=recipe, set=changes, reading=reading, progress=progress, seed=seed, **planting
        )
    facts = {
        "corpus": str(out),
        "canaries": str(get_sibling_path(out, "canaries.json")),
        "format": planting["format"],
        "space": parse_format(planting["format"]).size,
        "records": planted.records,
        "plantings": planted.plantings,
        "controls": len(planted.canaries.controls),
    }
    _report_planting(
        facts, _build_canary_rows(planted.canaries, planted.check, show_text=show_text), planted.check, as_json=json
    )


def _build_canary_rows(manifest: Canaries, check: SurvivalCheck | None, *, show_text: bool) -> list[dict[str, Any]]:
    """What is reported of each planted secret."""
    from recollect.results.text_masks import mask_unless_shown

    fates = {} if check is None else {survival.secret: survival for survival in check.secrets}
    rows = []
    for canary in manifest.planted:
        row = {
            "secret": canary.id,
            "planted": canary.planted,
            "text": mask_unless_shown(canary.text, show_text=show_text),
        }
        rows.append({**row, "training": _build_planted_survival_facts(fates[canary.id])} if fates else row)
    return rows


def _build_planted_survival_facts(survival: Survival) -> dict[str, Any]:
    """What `recollect plant` says of what becomes of a planted secret in training."""
    counts = {
        "unknown": survival.unknown_tokens,
        "whole": survival.kept_whole,
        "carried": survival.kept_by_state,
        "cut": survival.split,
        "lost": survival.lost,
    }
    return {"verdict": survival.verdict, **counts}


def _report_planting(
    facts: dict[str, Any], rows: list[dict[str, Any]], check: SurvivalCheck | None, *, as_json: bool
) -> None:
    """Say what was planted, and what would become of it."""
    if as_json:
        unknown = {} if check is None else {"unknown_controls": list(check.unknown_controls)}
        console.print_json({**facts, "secrets": rows, **unknown})
    else:
        title = f"{len(rows)} secrets planted {facts['plantings']} times, {facts['controls']} controls never"
        columns = ["secret", "planted", "text", *(["in training"] if check else [])]
        console.print_table(title, columns, [_build_canary_cells(row) for row in rows[:MAX_ROWS]])
        if len(rows) > MAX_ROWS:
            console.say(f"… and {len(rows) - MAX_ROWS} more.")
    for line in _iter_planting_warnings(rows, check):
        console.say(line)
    console.say(f"One of {facts['space']:,} each. Planted corpus: {facts['corpus']}. Secrets: {facts['canaries']}.")


def _build_canary_cells(row: dict[str, Any]) -> list[str]:
    """A row of the table of planted canaries."""
    cells = [row["secret"], str(row["planted"]), row["text"]]
    if "training" not in row:
        return cells
    counts = {"unknown": "unknown tokens", "whole": "whole", "carried": "carried", "cut": "cut in two", "lost": "lost"}
    found = [f"{row['training'][name]} {word}" for name, word in counts.items() if row["training"][name]]
    return [*cells, f"{row['training']['verdict']}: {', '.join(found)}"]


def _iter_planting_warnings(rows: list[dict[str, Any]], check: SurvivalCheck | None) -> Iterator[str]:
    """What a reader should know of planted secrets before training."""
    if check is None:
        return
    weak = [row for row in rows if row["training"]["verdict"] != "survives"]
    if weak:
        yield f"{len(weak)} of {len(rows)} secrets would not reach the model whole in all their copies."
    if any(row["training"]["carried"] for row in rows):
        yield "Carried: the copy is split between training sequences, but the model's state is carried over."
    if check.unknown_controls:
        yield f"{len(check.unknown_controls)} controls have tokens outside the vocabulary."
