"""What makes a function a verb: groups of declared fields become options, errors one clear message and a status."""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from recollect.cli.console import print_error
from recollect.cli.declared_fields import DeclaredField, parse_given
from recollect.cli.exit_status import COULD_NOT, INTERRUPTED
from recollect.files import describe_fault


class VerbOptionGroup(dict[str, Any]):
    """Options that many verbs share: those of them that were given, by name."""

    @classmethod
    def list_fields(cls) -> list[DeclaredField]:
        """The fields that become options of a verb."""
        raise NotImplementedError


def wrap_verb(function: Callable[..., None]) -> Callable[..., None]:
    """The function as a command: groups of options are spread out, errors are reported.

    A parameter whose type is an `VerbOptionGroup` becomes one option per field, so that options which many verbs share
    are declared once; the function gets those that were given.
    """
    groups = {
        name: kind
        for name, kind in _get_verb_hints(function).items()
        if isinstance(kind, type) and issubclass(kind, VerbOptionGroup)
    }

    @functools.wraps(function)
    def command(**options: Any) -> None:
        run_with_status(functools.partial(_call_verb, function, groups, options), list_verb_folders(options))

    command.__doc__ = unwrap_help(inspect.getdoc(function) or "")
    command.__signature__ = inspect.Signature(_expand_verb_groups(function, groups))  # type: ignore[attr-defined]
    return command


def run_with_status(work: Callable[[], None], folders: Sequence[Path] = (Path(),)) -> None:
    """Run a verb; an error becomes one message and its exit status.

    Args:
        work: What to do.
        folders: Where the traceback of an error that nobody foresaw may go.
    """
    try:
        work()
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        print_error("Interrupted. Run the same command again to resume.")
        raise typer.Exit(INTERRUPTED) from None
    except BaseException as error:  # a model's own code may call sys.exit, and a native library may panic
        print_error(str(describe_fault(error, folders)))
        raise typer.Exit(COULD_NOT) from None


def list_verb_folders(options: Mapping[str, Any]) -> list[Path]:
    """The folders that may take the traceback of a verb: its run folder, its work folder, the current one."""
    return [*(Path(options[name]) for name in ("out", "work") if options.get(name)), Path()]


def unwrap_help(text: str) -> str:
    """The help of a verb: line breaks of its docstring are removed, blank lines are kept."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text)


def _get_verb_hints(function: Any) -> dict[str, Any]:
    """The annotations of the function of a verb, resolved, `Annotated` kept."""
    return typing.get_type_hints(function, include_extras=True)


def _expand_verb_groups(
    function: Callable[..., None], groups: Mapping[str, type[VerbOptionGroup]]
) -> list[inspect.Parameter]:
    """The parameters of a verb: those of its function, each group replaced by its fields."""
    hints, parameters = _get_verb_hints(function), list[inspect.Parameter]()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in groups:
            parameters += [each.build_parameter() for each in groups[parameter.name].list_fields()]
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY))
    return parameters


def _call_verb(
    function: Callable[..., None], groups: Mapping[str, type[VerbOptionGroup]], options: dict[str, Any]
) -> None:
    """Call the function of a verb with each group's options put together again."""
    given = dict(options)
    for name, group in groups.items():
        fields = group.list_fields()
        group_options = {each.name: given.pop(each.name) for each in fields}
        given[name] = group(parse_given(fields, group_options))
    function(**given)
