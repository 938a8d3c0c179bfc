"""Verbs: groups of options are spread out and put together again; errors become one message and a status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from recollect.cli.verbs import verb
from recollect.errors import CorpusError


@dataclass(frozen=True, kw_only=True)
class Colours:
    """A group of options."""

    red: Annotated[int, typer.Option(help="How red.")] = 1
    blue: Annotated[bool, typer.Option("--blue")] = False


def run(function, *words):
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(verb(function))
    return CliRunner().invoke(app, list(words))


def test_a_group_is_spread_into_options_and_comes_back_whole():
    seen = []

    def paint(wall: Annotated[str, typer.Argument()], colours: Colours) -> None:
        """Paint a wall."""
        seen.append((wall, colours))

    assert run(paint, "north", "--red", "7", "--blue").exit_code == 0
    assert run(paint, "south").exit_code == 0
    assert seen == [("north", Colours(red=7, blue=True)), ("south", Colours())]
    assert "How red." in run(paint, "--help").output


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (CorpusError("The file is empty.", do="Give another."), 2, "recollect: The file is empty.\n  Give another.\n"),
        (PermissionError(13, "Permission denied", "a.jsonl"), 2, "recollect: Permission denied: a.jsonl\n"),
        (KeyboardInterrupt(), 130, "recollect: Interrupted. Run the same command again to go on where it stopped.\n"),
    ],
)
def test_errors_become_one_message_and_a_status(error, status, said):
    def fail() -> None:
        """Fail."""
        raise error

    result = run(fail)
    assert (result.exit_code, result.stderr) == (status, said)


def test_a_fault_of_our_own_is_not_hidden():
    def fail() -> None:
        """Fail."""
        raise ZeroDivisionError

    assert isinstance(run(fail).exception, ZeroDivisionError)
