"""`recollect list`: what there is, with one line each."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect.cli.components import show_components


def list_components(
    json: Annotated[bool, typer.Option("--json", help="Print the lists as JSON on standard output.")] = False,
) -> None:
    """List the available audits, signals and recipes, with one line each."""
    show_components(as_json=json)
