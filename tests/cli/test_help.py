"""What `--help` says: of every verb, in the words of a command line, and within the width of the terminal."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from recollect.audits.registry import list_audits_by_verb
from recollect.cli.app import VERBS, app, build_command

PYTHON = re.compile(r"\bNone\b|\btuple\b|\bTrue\b|\bFalse\b|\bdict\b|\bstr\b\.|=\{|\{\"")
"""Words of Python that mean nothing on a command line."""
RUN = {
    "--out",
    "--fail-if",
    "--about",
    "--system",
    "--junit",
    "--json",
    "--work",
    "--shared-work",
    "--work-limit-gb",
    "--real-names",
    "--name",
    "--seed",
    "--workers",
    "--threads",
    "--backend",
}
EVERY = [*VERBS, *list_audits_by_verb()]


def show_help(verb, width=80):
    shown = CliRunner(env={"COLUMNS": str(width)}).invoke(app, [verb, "--help"])
    assert shown.exit_code == 0, shown.output
    return shown.output


@pytest.mark.parametrize("verb", EVERY)
def test_the_help_of_every_verb_fits_and_does_not_read_as_python(verb):
    shown = show_help(verb)
    assert max(map(len, shown.splitlines())) <= 80
    assert not PYTHON.findall(shown)


@pytest.mark.parametrize("verb", EVERY)
def test_every_option_says_what_it_is_for(verb):
    silent = [each.name for each in build_command(verb).params if not getattr(each, "help", None)]
    assert silent == []


@pytest.mark.parametrize("verb", list_audits_by_verb())
def test_options_of_the_run_stand_together(verb):
    panels = {each.opts[0]: getattr(each, "rich_help_panel", None) for each in build_command(verb).params}
    assert {name for name, panel in panels.items() if panel == "The run"} == RUN
    assert {name for name, panel in panels.items() if panel is None and name.startswith("--")} <= {"--help"}
