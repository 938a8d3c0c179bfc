"""`recollect list`: what there is, with one line each."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.components import show_components, show_recipe


def list_components(
    recipe: Annotated[
        str | None,
        typer.Argument(
            metavar="[RECIPE]", help="A built-in recipe to print as YAML in place of the lists.", show_default=False
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the lists as JSON on standard output.")] = False,
) -> None:
    """List the available audits, signals and recipes, with one line each, or print one recipe.

    Plug-ins that cannot be used are listed as BROKEN, with the reason.

    `recollect list char-lstm > my-recipe.yaml`
    """
    if recipe is not None:
        show_recipe(recipe, as_json=json)
        return
    show_components(as_json=json)
