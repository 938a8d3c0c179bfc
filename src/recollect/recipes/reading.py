"""Reads recipes: by the name of a built-in one or from a YAML file, with settings changed on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from recollect.errors import PlanError
from recollect.recipes.recipe import Recipe
from recollect.settings import did_you_mean

Overrides = Mapping[str, Any] | Iterable[str]


def load_recipe(name_or_path: str | Path, overrides: Overrides = ()) -> Recipe:
    """The recipe of that name or file.

    Args:
        name_or_path: A built-in recipe such as "char-lstm", or the path of a YAML file.
        overrides: Settings to change, as a mapping or as "a.b=c" strings. A short name such as "units" is
            enough where only one setting is called so.

    >>> load_recipe("char-lstm", ["units=50", "training.epochs=2"]).model.units
    50
    """
    file = _file(name_or_path)
    text = file.read_text(encoding="utf-8")
    settings = _mapping(text, where=file.name)
    name = file.name.removesuffix(".yaml").removesuffix(".yml")
    recipe = _checked({"name": name, **settings}, text, where=file.name)
    changes = dict(_changes(overrides))
    if not changes:
        return recipe
    for key, value in changes.items():
        _set(settings, _full_path(key, recipe), value)
    return _checked({"name": name, **settings}, "", where=f"{file.name} with {', '.join(changes)} changed")


def builtin_recipes() -> dict[str, str]:
    """What comes with the library: name → one line."""
    names = sorted(file.name.removesuffix(".yaml") for file in _builtin().iterdir() if file.name.endswith(".yaml"))
    return {name: _summary(_builtin() / f"{name}.yaml") for name in names}


def _summary(file: Traversable) -> str:
    """The one line of a recipe, without parsing the rest: lists should be quick."""
    first = next(line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("summary:"))
    return str(yaml.safe_load(first)["summary"])


def _builtin() -> Traversable:
    """The folder of built-in recipes."""
    return files("recollect.recipes") / "builtin"


def _file(name_or_path: str | Path) -> Traversable:
    """The file that is meant: what looks like a path is one, the rest are names."""
    path, name = Path(name_or_path), str(name_or_path)
    if path.suffix in {".yaml", ".yml"} or len(path.parts) > 1:
        if path.is_file():
            return path
        raise PlanError(f"There is no recipe file {name!r}.", do="Check the path, or name a built-in recipe.")
    file = _builtin() / f"{name}.yaml"
    if file.is_file():
        return file
    known = builtin_recipes()
    raise PlanError(
        f"There is no recipe {name!r}.",
        do=f"{did_you_mean(name, known)}Built in: {', '.join(known)}; or give the path of a YAML file.",
    )


def _mapping(text: str, *, where: str) -> dict[str, Any]:
    """The settings in a YAML text, which must be a mapping without repeated keys."""
    try:
        node, value = yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PlanError(f"{where} is not YAML: {error}", do="Compare with a built-in recipe.") from error
    if not isinstance(value, dict):
        raise PlanError(f"{where} does not hold settings.", do="Write `model:`, `training:` and so on.")
    for key in _repeated(node):
        raise PlanError(f"{where} line {key.start_mark.line + 1}: {key.value!r} stands twice.", do="Keep one of them.")
    return value


def _repeated(node: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    """Keys that stand more than once in one mapping; YAML would silently take the last."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                yield key
            seen.add(key.value)
            yield from _repeated(value)


def _changes(overrides: Overrides) -> Iterator[tuple[str, Any]]:
    """Each setting to change with its value; the values of strings are read as YAML."""
    if isinstance(overrides, Mapping):
        yield from overrides.items()
        return
    for item in overrides:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise PlanError(f"{item!r} does not set anything.", do="Write it as setting=value, such as units=200.")
        yield key.strip(), yaml.safe_load(value)


def _full_path(key: str, recipe: Recipe) -> tuple[str, ...]:
    """Which setting a key means: a full path, or a last part that only one setting has."""
    paths = list(_paths(recipe))
    wanted = tuple(key.split("."))
    if wanted in paths or wanted[:2] == ("model", "config"):
        return wanted
    ends = [path for path in paths if path[-len(wanted) :] == wanted]
    names = [".".join(path) for path in ends]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise PlanError(f"{key!r} may mean {' or '.join(names)}.", do="Give the longer name.")
    shown = [".".join(path) for path in paths]
    do = did_you_mean(key, [*shown, *(path[-1] for path in paths)])
    raise PlanError(f"Recipe {recipe.name!r} has no setting {key!r}.", do=f"{do}Settings: {', '.join(shown)}.")


def _paths(section: BaseModel | dict[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all settings and sections."""
    for name, value in section.items() if isinstance(section, dict) else section:
        yield (*before, name)
        if isinstance(value, BaseModel | dict):
            yield from _paths(value, (*before, name))


def _set(settings: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Put a value where the path leads, making sections on the way."""
    *sections, last = path
    for name in sections:
        if not isinstance(settings.get(name), dict):
            settings[name] = {}
        settings = settings[name]
    settings[last] = value


def _checked(settings: dict[str, Any], text: str, *, where: str) -> Recipe:
    """The recipe, or an error that names the file, the line and the setting."""
    try:
        return Recipe.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        path = [str(part) for part in first["loc"]]
        line = _line(yaml.compose(text, Loader=yaml.SafeLoader), path) if text else None
        place = where if line is None else f"{where} line {line}"
        found, do = _explained(first, path)
        raise PlanError(f"{place}: {found}", do=do) from None


def _explained(error: ErrorDetails, path: list[str]) -> tuple[str, str]:
    """One pydantic error in our words; pydantic names the kind of model on the way to its settings, we do not."""
    name = ".".join(path[:1] + path[2:] if path[0] == "model" and len(path) > 2 else path)
    if error["type"] == "extra_forbidden":
        known = _known(path[:-1])
        return f"no setting {name!r}.", f"{did_you_mean(path[-1], known)}Known here: {', '.join(known)}."
    return f"{name} is {error['input']!r}. {error['msg']}.", "Change it, or leave it out for the default."


def _known(path: list[str]) -> list[str]:
    """The settings of a section, found by walking the schema; a union is entered by its kind."""
    schema = Recipe.model_json_schema()
    node = schema
    for part in path:
        node = node["properties"].get(part, node) if "properties" in node else node
        mapping = node.get("discriminator", {}).get("mapping")
        reference = node.get("$ref") or next((one["$ref"] for one in node.get("anyOf", []) if "$ref" in one), None)
        if mapping:
            reference = mapping.get(path[path.index(part) + 1]) if path.index(part) + 1 < len(path) else None
        node = schema["$defs"][reference.rsplit("/", 1)[1]] if reference else node
    return [name for name in node.get("properties", {}) if not (node is schema and name == "name")]


def _line(node: yaml.Node | None, path: list[str]) -> int | None:
    """The line of the setting, or of the deepest section on the way to it."""
    line = None
    for part in path:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == part:
                    line, node = key.start_mark.line + 1, value
    return line
