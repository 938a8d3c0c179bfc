"""`recollect list`: what there is, with one line each."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli import console


def list_parts(
    json: Annotated[bool, typer.Option("--json", help="Print the lists as JSON on standard output.")] = False,
) -> None:
    """List the audits, signals and recipes there are, with one line each."""
    from recollect.audits.registry import AUDITS
    from recollect.recipes.reading import builtin_recipes
    from recollect.signals.registry import SIGNALS

    parts = {
        "audits": {name: AUDITS.about(name) for name in AUDITS.names},
        "signals": {name: SIGNALS.about(name) for name in SIGNALS.names},
        "recipes": builtin_recipes(),
    }
    if json:
        console.print_json(parts)
        return
    for title, lines in parts.items():
        rows = [[name, line] for name, line in lines.items()] or [["–", "none yet"]]
        console.print_table(title.capitalize(), ["name", "what it is"], rows)
