"""The `recollect` command and its verbs; a verb's module is imported only when the verb is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from recollect.audits.registry import AUDITS, list_audits_by_verb
from recollect.cli.help import HelpedCommand, write_help
from recollect.printable import escape_message
from recollect.version import __version__

VERBS: Final = {
    "demo": ("recollect.cli.demo:demo", "Start here"),
    "run": ("recollect.cli.run_and_check:run", "Start here"),
    "check": ("recollect.cli.run_and_check:check", "Start here"),
    "plant": ("recollect.cli.plant:plant", "Prepare"),
    "sanitise": ("recollect.cli.sanitise:sanitise", "Prepare"),
    "train": ("recollect.cli.train:train", "Prepare"),
    "score": ("recollect.cli.score:score", "Prepare"),
    "report": ("recollect.cli.report:report", "Inspect"),
    "compare": ("recollect.cli.compare:compare", "Inspect"),
    "evaluate": ("recollect.cli.evaluate:evaluate", "Inspect"),
    "list": ("recollect.cli.list_components:list_components", "Inspect"),
    "doctor": ("recollect.cli.doctor:doctor", "Inspect"),
    "verify": ("recollect.cli.verify:verify", "Maintain"),
    "clean": ("recollect.cli.clean_and_forget:clean", "Maintain"),
    "forget": ("recollect.cli.clean_and_forget:forget", "Maintain"),
}
"""Verbs that are no audits: where each lives, and under which heading it is listed."""
AUDIT_PANEL: Final = "Audit"
_HELP = {"help_option_names": ["-h", "--help"]}


class VerbGroup(TyperGroup):
    """The verbs, audits and those of plug-ins between the ones that prepare and the ones that look."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All verbs, in the order of the help."""
        names = list(VERBS)
        index = names.index("report")
        return [*names[:index], *list_audits_by_verb(), *names[index:]]

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the options before the verb."""
        with _escape_usage_errors():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Read the options of the verb, and run it."""
        with _escape_usage_errors():
            return super().invoke(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb of that name."""
        return _LazyCommand(cmd_name) if cmd_name in self.list_commands(ctx) else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the command: its options, and every verb with one line."""
        write_help(self, ctx, formatter)


class _LazyCommand(HelpedCommand):
    """A verb in the list: one line of help, and the real command once it is called."""

    def __init__(self, verb: str) -> None:
        if verb in VERBS:
            location, panel = VERBS[verb]
            about = _read_verb_summary(location)
        else:
            about, panel = AUDITS.describe(list_audits_by_verb()[verb]), AUDIT_PANEL
        super().__init__(name=verb, help=about, rich_help_panel=panel)
        self.verb = verb

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the real command behind a verb of the app."""
        return build_command(self.verb).make_context(info_name, args, parent, **extra)


@contextmanager
def _escape_usage_errors() -> Iterator[None]:
    """Escape control characters in what the app's parser prints about a wrong command line."""
    try:
        yield
    except Exception as error:
        if (message := getattr(error, "format_message", None)) is not None:
            error.format_message = partial(escape_message, message())  # type: ignore[attr-defined]
        raise


def build_command(verb: str) -> Any:
    """The real command of a verb of the app."""
    from recollect.cli.verb_wrapper import wrap_verb as make_verb

    if verb in VERBS:
        module, _, name = VERBS[verb][0].partition(":")
        function = make_verb(getattr(import_module(module), name))
    else:
        from recollect.cli.audit_verbs import build_audit_command

        function = build_audit_command(list_audits_by_verb()[verb])
    alone = typer.Typer(
        add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False, context_settings=_HELP
    )
    alone.command(verb, cls=HelpedCommand)(function)
    return typer.main.get_command(alone)


def _read_verb_summary(location: str) -> str:
    """What the app lists beside a verb: the first line of its docstring, read without importing it."""
    module, _, name = location.partition(":")
    spec = find_spec(module)
    source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""


app = typer.Typer(
    cls=VerbGroup,
    epilog="Start with `recollect demo`. Every verb explains itself: `recollect score --help`.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings=_HELP,
)


def _print_version(wanted: bool) -> None:
    """Print the version of the app and stop."""
    if wanted:
        typer.echo(f"recollect {__version__}")
        raise typer.Exit


@app.callback()
def recollect(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Measure what a trained model memorises of its training data, whose it is, and whether it can be extracted."""
