"""The command line: one thin file per verb."""

from __future__ import annotations


def main() -> None:
    """Run the `recollect` command."""
    from recollect.cli.app import app

    app(prog_name="recollect")
