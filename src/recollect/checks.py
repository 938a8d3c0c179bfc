"""What settings share: the checks they run on themselves, their docstrings, and a "did you mean" for every lookup."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
import textwrap
import typing
from collections.abc import Iterable
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, TypeVar

from recollect.errors import PlanError

_Kind = TypeVar("_Kind")
NAME_PATTERN = r"^[a-z][a-z0-9_.\-]*$"
"""A name for plans, options and files: it can be part of a path, and leads nowhere else."""


def check_between(low: float, high: float, **values: float) -> None:
    """Refuse values outside the open interval (low, high).

    >>> check_between(0, 1, confidence=0.95)
    """
    for name, value in values.items():
        if not low < value < high:
            raise PlanError(
                f"{name} is {value}.", do=f"Choose a number between {low:g} and {high:g}.", code="out_of_range"
            )


def check_at_least(low: float, **values: float) -> None:
    """Refuse values below `low`.

    >>> check_at_least(1, patterns=10)
    """
    for name, value in values.items():
        if not value >= low:
            raise PlanError(f"{name} is {value}.", do=f"Choose {low:g} or more.", code="out_of_range")


def check_one_of(known: Iterable[str], **values: str) -> None:
    """Refuse a name that is not known, and suggest the nearest that is.

    >>> check_one_of(["user", "record"], by="user")
    """
    names = list(known)
    for name, value in values.items():
        if value not in names:
            raise PlanError(
                f"{name} is {value!r}.",
                do=f"{suggest_name(value, names)}Known: {', '.join(names)}.",
                code="unknown_choice",
            )


def quote_value(value: object) -> str:
    """A checked value as a message shows it: as Python writes it, but only the beginning of a long one.

    >>> quote_value("abc"), len(quote_value(["abc"] * 1000))
    ("'abc'", 202)
    """
    written = repr(value)
    return written if len(written) <= 200 else f"{written[:200]} …"


def check_names(what: str, names: Iterable[str]) -> None:
    """Refuse names that are none: they become parts of paths, and must not lead out of a folder.

    >>> check_names("role", ["target", "shadow-0"])
    """
    for name in names:
        if re.fullmatch(NAME_PATTERN, name) is None:
            raise PlanError(
                f"{name!r} is no name of a {what}.",
                do="Begin with a lowercase letter, and use lowercase letters, digits, '_', '.' and '-'.",
                code="bad_name",
            )


def suggest_name(name: str, known: Iterable[str]) -> str:
    """For a name that fails a check: a question that names the nearest known name, or nothing at all.

    >>> suggest_name("confidnce", ["confidence", "signal"])
    "Did you mean 'confidence'? "
    """
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"Did you mean {near[0]!r}? " if near else ""


def read_setting(kind: type, name: str, value: Any, *, owner: str = "") -> Any:
    """The value of a setting, checked against the type of its field: YAML and options have no tuples.

    Args:
        kind: A dataclass, whose fields are its settings.
        name: The setting.
        value: What was given for it.
        owner: Whose setting it is, for the message: "signal 'loss'"; empty where the message is put under its name.

    Raises:
        PlanError: The value is not of that type; the message names it and says what the setting is.
    """
    try:
        hint = typing.get_type_hints(kind)[name]
    except NameError:
        return value  # a type that is known to type checkers alone
    try:
        return read_value(hint, value)
    except ValueError as error:
        raise PlanError(
            f"{name}{owner and f' of the {owner}'} is {quote_value(value)}. {error}.",
            do=f"{_describe_setting(kind, name)}Change it, or leave it out for the default.",
            code="invalid_setting",
        ) from None


def read_value(hint: Any, value: Any) -> Any:
    """The value of a setting as its type has it: a list that was written for a tuple is one.

    >>> read_value(tuple[int, ...], [1, 2])
    (1, 2)

    Raises:
        ValueError: It is not of that type; the message says what is.
    """
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError  # lists do without it

    try:
        adapter = TypeAdapter(hint, config=None if _has_own_config(hint) else ConfigDict(arbitrary_types_allowed=True))
    except (NameError, PydanticUserError):
        return value  # a type that is known to type checkers alone
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"]) from None


def _has_own_config(hint: Any) -> bool:
    """Whether the type of a checked setting states itself how it is validated."""
    from pydantic import BaseModel

    own = isinstance(hint, type) and (issubclass(hint, BaseModel) or hasattr(hint, "__dataclass_fields__"))
    return own or typing.is_typeddict(hint)


def _describe_setting(kind: type, name: str) -> str:
    """For a setting that fails a check: what it is and its default, or nothing at all."""
    doc = field_docs(kind).get(name, "")
    default = next(each.default for each in fields(kind) if each.name == name)
    shown = "" if default is MISSING or default is None else f"Its default is {default!r}. "
    return f"{name}: {doc} {shown}" if doc else shown


class _FieldDocs:
    """The docstring of a settings class, with those of its fields added when it is read: few who import it do."""

    def __init__(self, doc: str) -> None:
        self.doc = doc

    def __get__(self, instance: object, owner: type) -> str:
        lines = [f"    {name}: {doc}" for name, doc in field_docs(owner).items()]
        return "\n".join([inspect.cleandoc(self.doc), "", "Fields:", *lines]) if lines else self.doc


def document_fields(kind: type[_Kind]) -> type[_Kind]:
    """Have `help()` show the docstrings beneath the fields of a settings class; as a decorator above `@dataclass`."""
    setattr(kind, "__doc__", _FieldDocs(kind.__doc__ or ""))  # noqa: B010 - type checkers hold it to be a text
    return kind


@cache
def field_docs(kind: type) -> dict[str, str]:
    """The docstring beneath each field of a settings class that is checked, by field.

    >>> field_docs(Exception)
    {}
    """
    try:
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError):
        return {}  # it was made without a file
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - the source of a class is one
    found: dict[str, str] = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name) and isinstance(text, str):
            found[before.target.id] = " ".join(text.split())
    return found


def describe_fields(schema: dict[str, Any], kind: type) -> None:
    """Add the docstrings beneath the fields of a pydantic model to its JSON Schema, as its `json_schema_extra`.

    Pydantic's own way, `use_attribute_docstrings`, reads them whenever the model is imported, which few need.
    """
    docs = {name: doc for each in reversed(kind.__mro__) for name, doc in field_docs(each).items()}
    for name, described in schema.get("properties", {}).items():
        if name in docs:
            described["description"] = docs[name]
