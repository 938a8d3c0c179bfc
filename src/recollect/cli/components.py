"""What `recollect list` shows: audits, signals and recipes, read without importing them."""

from __future__ import annotations

from recollect.cli import console


def show_components(*, as_json: bool) -> None:
    """Print the audits, signals and recipes there are, with one line each."""
    from recollect.audits.registry import AUDITS
    from recollect.recipes.builtin_recipes import list_builtin_recipes
    from recollect.signals.registry import SIGNALS

    components = {
        "audits": {name: AUDITS.describe(name) for name in AUDITS.names},
        "signals": {name: SIGNALS.describe(name) for name in SIGNALS.names},
        "recipes": list_builtin_recipes(),
    }
    if as_json:
        console.print_json(components)
        return
    for title, lines in components.items():
        rows = [[name, summary] for name, summary in lines.items()] or [["–", "none yet"]]
        console.print_table(title.capitalize(), ["name", "what it is"], rows)
