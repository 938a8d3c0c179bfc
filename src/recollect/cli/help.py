"""How `--help` is laid out: plain sections within the width of the terminal, without what loads a markup renderer."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperCommand

_TYPE = re.compile(r" <(bool|str|path)>$")


class HelpedCommand(TyperCommand):
    """A verb whose help is written by `write_help`."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the verb."""
        write_help(self, ctx, formatter)


def write_help(command: Any, ctx: Any, formatter: Any) -> None:
    """Write usage, description and every panel of a command: its arguments, options and verbs."""
    command.format_usage(ctx, formatter)
    formatter.write_paragraph()
    formatter.write_text(_unescape(command.help or ""))
    for panel, rows in _list_panels(command, ctx).items():
        formatter.write_paragraph()
        formatter.write(typer.style(panel, bold=True) + "\n")
        formatter.indent()
        formatter.write_dl(rows, col_max=28)
        formatter.dedent()
    if command.epilog:
        formatter.write_paragraph()
        formatter.write_text(_unescape(command.epilog))


def _list_panels(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """The rows of each panel, in the order of the help: arguments, options without a panel, all others, verbs."""
    panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            default = "Arguments" if parameter.param_type_name == "argument" else "Options"
            panel = getattr(parameter, "rich_help_panel", None) or default
            panels.setdefault(panel, []).append(_style_row(*record))
    for name in getattr(command, "list_commands", lambda ctx: ())(ctx):
        verb = command.get_command(ctx, name)
        panels.setdefault(verb.rich_help_panel, []).append(_style_row(name, verb.help))
    return {panel: rows for panel, rows in panels.items() if rows}


def _style_row(name: str, text: str) -> tuple[str, str]:
    """A row of a panel; what is on or off needs no type beside it, and an argument neither."""
    return typer.style(_TYPE.sub("", name), fg="cyan"), _unescape(text)


def _unescape(text: str) -> str:
    """A text without markup: escaped brackets are brackets."""
    return text.replace("\\[", "[")
