"""What `recollect list` shows: audits, signals and recipes, read without importing ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.cli import console

if TYPE_CHECKING:
    from recollect.signals.registry import Registry


def show_components(*, as_json: bool) -> None:
    """Print the audits, signals and recipes there are, with one line each."""
    from recollect.audits.registry import AUDITS
    from recollect.recipes.builtin_recipes import list_builtin_recipes
    from recollect.signals.registry import SIGNALS

    components = {
        "audits": _describe_registered(AUDITS),
        "signals": _describe_registered(SIGNALS),
        "recipes": list_builtin_recipes(),
    }
    if as_json:
        console.print_json(components)
        return
    for title, lines in components.items():
        rows = [[name, summary] for name, summary in lines.items()] or [["–", "none yet"]]
        console.print_table(title.capitalize(), ["name", "what it is"], rows)


def show_recipe(name: str, *, as_json: bool) -> None:
    """Print a built-in recipe as its file has it, or its settings as JSON."""
    from recollect.recipes.recipe_file import load_recipe, read_recipe_text

    if as_json:
        console.print_json(load_recipe(name).model_dump(mode="json"))
    else:
        console.print_text(read_recipe_text(name))


def find_broken_plugins() -> dict[str, str]:
    """What is wrong with installed plug-ins that cannot be used, by "audit NAME" or "signal NAME"; imports them."""
    from recollect.audits.registry import AUDITS
    from recollect.signals.registry import SIGNALS

    return {
        f"{registry.noun} {name}": fault
        for registry in (AUDITS, SIGNALS)
        for name in registry.plugins
        if (fault := registry.find_fault(name))
    }


def _describe_registered(registry: Registry) -> dict[str, str]:
    """The components of one registry, by name: what each is, or why a plug-in cannot be used."""
    faults = {name: registry.find_fault(name) for name in registry.plugins}
    return {name: f"BROKEN: {faults[name]}" if faults.get(name) else registry.describe(name) for name in registry.names}
