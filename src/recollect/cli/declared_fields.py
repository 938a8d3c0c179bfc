"""From declared fields to options of the command line, and back: a setting is declared once, where it is used."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer
import yaml

from recollect.documents import load_yaml
from recollect.errors import PlanError

NOTHING = inspect.Parameter.empty


@dataclass(frozen=True, kw_only=True)
class DeclaredField:
    """A field of a dataclass or a pydantic model, as the command line needs it."""

    name: str
    hint: Any
    default: Any = NOTHING
    help: str = ""
    panel: str | None = None
    metavar: str | None = None
    """What stands for a value in the help; by its type, if None."""

    @property
    def option(self) -> str:
        """How it is written: `--top-k`."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def _declared(self) -> str:
        """The option as it is declared: what is on unless it is turned off has a second name for that."""
        return f"{self.option}/--no-{self.option[2:]}" if self.default is True else self.option

    def is_given(self, value: Any) -> bool:
        """Whether this is what was typed, and not what stands for nothing."""
        return value not in (None, [], ()) and (value is not False or self.default is True)

    def build_parameter(self) -> inspect.Parameter:
        """The parameter of a typer command that stands for it; what is not given is None."""
        kind, metavar = _choose_typer_type(self.hint)
        option = typer.Option(
            self._declared,
            help=self._build_help().replace("[", r"\["),  # brackets are no markup
            metavar=self.metavar or metavar,
            show_default=False,
            rich_help_panel=self.panel,
        )
        needed = self.default is NOTHING
        off = kind is bool and self.default is not True
        annotation = Annotated[kind if off or needed else kind | None, option]  # type: ignore[valid-type]
        default = NOTHING if needed else False if off else None
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    def _build_help(self) -> str:
        """What it is, and its default."""
        if self.default in (NOTHING, None, False, "", ()) or (isinstance(self.default, Mapping) and not self.default):
            return self.help
        shown = ",".join(map(str, self.default)) if isinstance(self.default, tuple) else self.default
        return f"{self.help} (default: {shown})"

    def parse(self, written: Any) -> Any:
        """The value that was written, as its type has it.

        Raises:
            PlanError: It is not of that type.
        """
        if isinstance(written, bool):
            return written
        if _is_mapping_field(self.hint):
            from recollect.documents import parse_overrides

            return dict(parse_overrides(written))
        if _holds_many(self.hint):
            return self._validate(
                [_parse_field_value(item, self.hint) for each in written for item in self._split_items(each)]
            )
        return self._validate(_parse_field_value(written, self.hint))

    def _split_items(self, written: str) -> list[str]:
        """Several numbers may be between commas; texts may hold commas of their own."""
        return [written] if _takes_text(self.hint) else written.split(",")

    def _validate(self, value: Any) -> Any:
        """The value, checked against its type."""
        from recollect.checks import read_value

        try:
            return read_value(self.hint, value)
        except ValueError as error:
            raise PlanError(f"{self.option} is {value!r}. {error}.", do="See --help.", code="invalid_setting") from None


def list_fields(kind: Any, *, skip: frozenset[str] = frozenset(), panel: str | None = None) -> list[DeclaredField]:
    """The fields of a settings dataclass or of a reference, with the docstrings beneath them as help."""
    from recollect.checks import field_docs

    hints, docs = typing.get_type_hints(kind, include_extras=True), field_docs(kind)
    if dataclasses.is_dataclass(kind):
        defaults = {each.name: _get_field_default(each) for each in dataclasses.fields(kind)}
    else:
        defaults = {name: each.get_default(call_default_factory=True) for name, each in kind.model_fields.items()}
    return [
        DeclaredField(name=name, hint=hints[name], default=default, help=docs.get(name, ""), panel=panel)
        for name, default in defaults.items()
        if name not in skip
    ]


def parse_given(fields: list[DeclaredField], options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the fields that were given on the command line, parsed."""
    return {each.name: each.parse(options[each.name]) for each in fields if each.is_given(options.get(each.name))}


def _get_field_default(setting: dataclasses.Field[Any]) -> Any:
    """The default of a dataclass field."""
    if setting.default is not dataclasses.MISSING:
        return setting.default
    return NOTHING if setting.default_factory is dataclasses.MISSING else setting.default_factory()


def _unwrap_hint(hint: Any) -> tuple[Any, ...]:
    """The types that a field's hint allows besides None, without annotations."""
    if typing.get_origin(hint) is Annotated:
        return _unwrap_hint(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return tuple(each for one in typing.get_args(hint) if one is not type(None) for each in _unwrap_hint(one))
    return (hint,)


def _choose_typer_type(hint: Any) -> tuple[Any, str | None]:
    """The type that typer is given for a declared field, and the placeholder in its help."""
    kinds = _unwrap_hint(hint)
    if kinds == (bool,):
        return bool, None
    if _is_mapping_field(hint):
        return list[str], "SETTING=VALUE"
    if _holds_many(hint):
        return list[str], "VALUE"
    if all(typing.get_origin(kind) is Literal for kind in kinds):
        return Literal[*(choice for kind in kinds for choice in typing.get_args(kind))], None
    names = {int: "INTEGER", float: "NUMBER", str: "TEXT"}
    return str, names.get(kinds[0], "VALUE")


def _is_mapping_field(hint: Any) -> bool:
    """Whether a field holds settings of its own."""
    return any(
        _get_generic_class(kind) is not None and issubclass(_get_generic_class(kind), Mapping)
        for kind in _unwrap_hint(hint)
    )


def _holds_many(hint: Any) -> bool:
    """Whether a field holds several values."""
    return any(_get_generic_class(kind) in (tuple, list, set, frozenset) for kind in _unwrap_hint(hint))


def _takes_text(hint: Any) -> bool:
    """Whether the values of a field are texts."""
    return str in (
        each for kind in _unwrap_hint(hint) for one in (typing.get_args(kind) or (kind,)) for each in _unwrap_hint(one)
    )


def _get_generic_class(kind: Any) -> Any:
    """The class behind the generic type of a field, if it is one."""
    origin = typing.get_origin(kind)
    return origin if isinstance(origin, type) else None


def _parse_field_value(written: str, hint: Any) -> Any:
    """The value of a field as YAML reads it: numbers, none; texts as they are."""
    if written.lower() == "none":
        return None
    if _takes_text(hint) or any(typing.get_origin(kind) is Literal for kind in _unwrap_hint(hint)):
        return written
    try:
        return load_yaml(written, name="The value of an option")
    except (yaml.YAMLError, ValueError, RecursionError):
        return written
