"""The command line: one thin file per verb."""

from __future__ import annotations


def main() -> None:
    """Run the `recollect` command."""
    import sys

    from recollect.cli.app import app
    from recollect.cli.verbs import COULD_NOT, complain
    from recollect.errors import RecollectError

    try:
        app(prog_name="recollect")
    except RecollectError as error:  # before a verb could begin: an installed plug-in cannot be used
        complain(str(error))
        sys.exit(COULD_NOT)
