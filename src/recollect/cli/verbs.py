"""What makes a function a verb: settings become options, and errors become one clear message and a status."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import sys
import typing
from collections.abc import Callable
from typing import Any

import typer

from recollect.errors import RecollectError

LIMIT_PASSED = 1
COULD_NOT = 2
INTERRUPTED = 130


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """The function as a command: groups of options are spread out, errors are reported.

    A parameter whose type is a dataclass becomes one option per field, so that options which many verbs share
    are written once; the function gets the dataclass back.
    """
    groups = {name: kind for name, kind in _hints(function).items() if dataclasses.is_dataclass(kind)}

    @functools.wraps(function)
    def command(**options: Any) -> None:
        try:
            function(**_gathered(options, groups))
        except RecollectError as error:
            complain(str(error))
            raise typer.Exit(COULD_NOT) from None
        except OSError as error:
            complain(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
            raise typer.Exit(COULD_NOT) from None
        except KeyboardInterrupt:
            complain("Interrupted. Run the same command again to go on where it stopped.")
            raise typer.Exit(INTERRUPTED) from None

    # a line break of the source is none of the help's; a blank line is
    command.__doc__ = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(function) or "")
    command.__signature__ = inspect.Signature(_spread(function, groups))  # type: ignore[attr-defined]
    return command


def complain(message: str) -> None:
    """Say on standard error what went wrong."""
    sys.stderr.write(f"recollect: {message}\n")


def _hints(function: Any) -> dict[str, Any]:
    """The annotations of a function or class, resolved, `Annotated` kept."""
    return typing.get_type_hints(function, include_extras=True)


def _spread(function: Callable[..., None], groups: dict[str, Any]) -> list[inspect.Parameter]:
    """The parameters of the command: those of the function, each group replaced by its fields."""
    hints, parameters = _hints(function), []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in groups:
            parameters += _fields(groups[parameter.name])
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY))
    return parameters


def _fields(group: Any) -> list[inspect.Parameter]:
    """One parameter per field of a group."""
    hints = _hints(group)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(group)
    ]


def _gathered(options: dict[str, Any], groups: dict[str, Any]) -> dict[str, Any]:
    """The options with each group's fields put together again."""
    given = dict(options)
    for name, group in groups.items():
        given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
    return given
