"""The recipes that come with the library, by name; read without what it takes to understand a recipe."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable


def list_builtin_recipes() -> dict[str, str]:
    """What comes with the library: name → one line."""
    names = sorted(
        file.name.removesuffix(".yaml") for file in get_builtin_folder().iterdir() if file.name.endswith(".yaml")
    )
    return {name: _read_summary(get_builtin_folder() / f"{name}.yaml") for name in names}


def _read_summary(file: Traversable) -> str:
    """The one line of a recipe, without parsing the rest: lists should be quick."""
    first = next(line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("summary:"))
    import yaml

    return str(yaml.safe_load(first)["summary"])


def get_builtin_folder() -> Traversable:
    """The folder of built-in recipes."""
    return files("recollect.recipes") / "builtin"
