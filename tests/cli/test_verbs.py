"""Verbs: groups of options are spread out and put together again; errors become one message and a status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from recollect.cli.declared_fields import list_fields
from recollect.cli.verb_wrapper import VerbOptionGroup, wrap_verb
from recollect.errors import CorpusError


@dataclass(frozen=True, kw_only=True)
class Paint:
    """What options are made of."""

    red: int = 1
    """How red."""
    blue: bool = False
    """Whether it is blue [or not]."""
    dry: bool = True
    """Whether it dries."""
    gloss: float | None = 0.5
    """How much it shines."""
    coats: tuple[int, ...] = (1, 2)
    """How thick each coat is."""
    names: tuple[str, ...] = ()
    """What it is called."""
    finish: Literal["matt", "silk"] = "matt"
    """How it looks."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else there is to say."""


class Colours(VerbOptionGroup):
    """A group of options."""

    @classmethod
    def list_fields(cls):
        """Those of a paint."""
        return list_fields(Paint)


def run(function, *words):
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(wrap_verb(function))
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, list(words))


def painted(*words):
    """What a verb gets of these options, and how it ends."""
    seen = []

    def paint(wall: Annotated[str, typer.Argument()], colours: Colours) -> None:
        """Paint a wall."""
        seen.append((wall, dict(colours)))

    done = run(paint, "north", *words)
    return seen[0][1] if seen else None, done


def test_a_group_is_spread_into_options_and_what_was_given_comes_back():
    assert painted("--red", "7", "--blue")[0] == {"red": 7, "blue": True}
    assert painted()[0] == {}
    shown = painted("--help")[1].output
    assert "How red. (default: 1)" in shown
    assert "(default: 1,2)" in shown
    assert "Whether it is blue [or not]." in shown


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["--dry"], {"dry": True}),
        (["--no-dry"], {"dry": False}),
        (["--gloss", "none"], {"gloss": None}),
        (["--gloss", "1e-5"], {"gloss": 1e-5}),
        (["--coats", "3,4"], {"coats": (3, 4)}),
        (["--coats", "3", "--coats", "4"], {"coats": (3, 4)}),
        (["--names", "sky, blue", "--names", "7"], {"names": ("sky, blue", "7")}),
        (["--finish", "silk"], {"finish": "silk"}),
        (["--more", "a=[1, 2]", "--more", "b=yes"], {"more": {"a": [1, 2], "b": True}}),
    ],
    ids=str,
)
def test_values_are_what_their_types_say(words, given):
    assert painted(*words)[0] == given


@pytest.mark.parametrize(
    "words",
    [["--red", "none"], ["--red", "7.5"], ["--red", "x"], ["--coats", "1,x"], ["--gloss", "[1"], ["--more", "a"]],
    ids=str,
)
def test_values_of_another_type_are_refused_in_one_message(words):
    given, done = painted(*words)
    assert given is None
    assert done.exit_code == 2
    assert done.stderr.count("recollect: ") == 1


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (CorpusError("The file is empty.", do="Give another."), 2, "recollect: The file is empty.\n  Give another.\n"),
        (PermissionError(13, "Permission denied", "a.jsonl"), 2, "recollect: Permission denied: a.jsonl\n"),
        (KeyboardInterrupt(), 130, "recollect: Interrupted. Run the same command again to resume.\n"),
    ],
)
def test_errors_become_one_message_and_a_status(error, status, said):
    def fail() -> None:
        """Fail."""
        raise error

    result = run(fail)
    assert (result.exit_code, result.stderr) == (status, said)


def test_a_fault_of_our_own_is_not_hidden(tmp_path, monkeypatch):
    def fail() -> None:
        """Fail."""
        raise ZeroDivisionError

    monkeypatch.chdir(tmp_path)
    found = run(fail)
    assert found.exit_code == 2
    assert "ZeroDivisionError" in found.stderr
    (kept,) = tmp_path.glob("traceback-*.txt")
    assert kept.name in found.stderr
    assert "raise ZeroDivisionError" in kept.read_text()
