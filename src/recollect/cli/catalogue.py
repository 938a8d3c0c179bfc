"""`recollect list`: what there is, with one line each."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli import console


def list_components(
    json: Annotated[bool, typer.Option("--json", help="Print the lists as JSON on standard output.")] = False,
) -> None:
    """List the audits, signals and recipes there are, with one line each."""
    from recollect.audits.registry import AUDITS
    from recollect.recipes.builtin_recipes import list_builtin_recipes
    from recollect.signals.registry import SIGNALS

    components = {
        "audits": {name: AUDITS.describe(name) for name in AUDITS.names},
        "signals": {name: SIGNALS.describe(name) for name in SIGNALS.names},
        "recipes": list_builtin_recipes(),
    }
    if json:
        console.print_json(components)
        return
    for title, lines in components.items():
        rows = [[name, summary] for name, summary in lines.items()] or [["–", "none yet"]]
        console.print_table(title.capitalize(), ["name", "what it is"], rows)
