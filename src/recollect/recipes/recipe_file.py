"""Reads recipes: by the name of a built-in one or from a YAML file, with settings changed on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from recollect.checks import suggest_name
from recollect.documents import Document, Overrides, parse_overrides, set_at_path
from recollect.errors import PlanError
from recollect.recipes.builtin_recipes import get_builtin_folder, list_builtin_recipes
from recollect.recipes.recipe import Recipe


def load_recipe(name_or_path: str | Path, overrides: Overrides = ()) -> Recipe:
    """The recipe of that name or file.

    Args:
        name_or_path: A built-in recipe such as "char-lstm", or the path of a YAML file.
        overrides: Settings to change, as a mapping or as "a.b=c" strings. A short name such as "units" is
            enough where only one setting is called so.

    >>> load_recipe("char-lstm", ["units=50", "training.epochs=2"]).model.units
    50
    """
    file = _find_recipe_file(name_or_path)
    text = file.read_text(encoding="utf-8")
    written = Document.read(
        text, name=file.name, do="Write `model:`, `training:` and so on; compare with a built-in recipe."
    )
    name = file.name.removesuffix(".yaml").removesuffix(".yml")
    recipe = build_recipe({"name": name, **written.settings}, written.locate)
    changed = dict(parse_overrides(overrides))
    if not changed:
        return recipe
    for key, value in changed.items():
        set_at_path(written.settings, _resolve_setting(key, recipe), value)
    described = Document(f"{file.name} with {', '.join(changed)} changed", written.settings)
    return build_recipe({"name": name, **written.settings}, described.locate)


def read_recipe_text(name_or_path: str | Path) -> str:
    """The file of a recipe as it is written, comments included.

    >>> read_recipe_text("char-lstm").startswith("summary:")
    True
    """
    return _find_recipe_file(name_or_path).read_text(encoding="utf-8")


def is_recipe_file(name: str) -> bool:
    """Whether this is the path of a recipe, and not the name of a built-in one.

    >>> is_recipe_file("small.yaml"), is_recipe_file("recipes/small"), is_recipe_file("char-lstm")
    (True, True, False)
    """
    path = Path(name)
    return path.suffix in {".yaml", ".yml"} or len(path.parts) > 1


def _find_recipe_file(name_or_path: str | Path) -> Traversable:
    """The file that is meant: what looks like a path is one, the rest are names."""
    path, name = Path(name_or_path), str(name_or_path)
    if is_recipe_file(name):
        if path.is_file():
            return path
        raise PlanError(
            f"There is no recipe file {name!r}.",
            do="Check the path, or name a built-in recipe.",
            code="no_such_recipe_file",
        )
    file = get_builtin_folder() / f"{name}.yaml"
    if file.is_file():
        return file
    known = list_builtin_recipes()
    raise PlanError(
        f"There is no recipe {name!r}.",
        do=f"{suggest_name(name, known)}Built in: {', '.join(known)}; or give the path of a YAML file.",
        code="no_such_recipe",
    )


def _resolve_setting(key: str, recipe: Recipe) -> tuple[str, ...]:
    """Which setting of a recipe file a key means: a full path, or a last part that only one setting has."""
    paths = list(_iter_setting_paths(recipe))
    wanted = tuple(key.split("."))
    if wanted in paths or wanted[:2] == ("model", "config"):
        return wanted
    ends = [path for path in paths if path[-len(wanted) :] == wanted]
    names = [".".join(path) for path in ends]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise PlanError(f"{key!r} may mean {' or '.join(names)}.", do="Give the longer name.", code="ambiguous_setting")
    shown = [".".join(path) for path in paths]
    do = suggest_name(key, [*shown, *(path[-1] for path in paths)])
    raise PlanError(
        f"Recipe {recipe.name!r} has no setting {key!r}.",
        do=f"{do}Settings: {', '.join(shown)}.",
        code="unknown_setting",
    )


def _iter_setting_paths(section: BaseModel | dict[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all settings and sections of a recipe."""
    for name, value in section.items() if isinstance(section, dict) else section:
        yield (*before, name)
        if isinstance(value, BaseModel | dict):
            yield from _iter_setting_paths(value, (*before, name))


def build_recipe(settings: dict[str, Any], locate: Callable[[list[str]], str] = lambda path: "inline") -> Recipe:
    """The recipe with these settings, as a file states them.

    Args:
        settings: By section.
        locate: Says where a setting was found, for the error.

    Raises:
        PlanError: There is no such setting, or a value is not of its type.
    """
    try:
        return Recipe.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        path = [str(piece) for piece in first["loc"]]
        raise _build_recipe_error(first, path, locate(path)) from None


def _build_recipe_error(error: ErrorDetails, path: list[str], location: str) -> PlanError:
    """One pydantic error in our words; pydantic names the kind of model on the way to its settings, we do not."""
    name = ".".join(path[:1] + path[2:] if path[0] == "model" and len(path) > 2 else path)
    if error["type"] == "extra_forbidden":
        known = _list_known_settings(path[:-1])
        do = f"{suggest_name(path[-1], known)}Known here: {', '.join(known)}."
        return PlanError(f"{location}: no setting {name!r}.", do=do, code="unknown_setting")
    found = f"{location}: {name} is {error['input']!r}. {error['msg']}."
    return PlanError(found, do="Change it, or leave it out for the default.", code="invalid_setting")


def _list_known_settings(path: list[str]) -> list[str]:
    """The settings of a section of a recipe, found by walking the schema; a union is entered by its kind."""
    schema = Recipe.model_json_schema()
    node = schema
    for piece in path:
        node = node["properties"].get(piece, node) if "properties" in node else node
        mapping = node.get("discriminator", {}).get("mapping")
        reference = node.get("$ref") or next((one["$ref"] for one in node.get("anyOf", []) if "$ref" in one), None)
        if mapping:
            reference = mapping.get(path[path.index(piece) + 1]) if path.index(piece) + 1 < len(path) else None
        node = schema["$defs"][reference.rsplit("/", 1)[1]] if reference else node
    return [name for name in node.get("properties", {}) if not (node is schema and name == "name")]
