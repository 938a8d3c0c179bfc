"""Packages that offer names of their modules, and import a module only when one of its names is used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def export_lazily(package: str, names: Mapping[str, Iterable[str]]) -> tuple[Callable[[str], Any], list[str]]:
    """The `__getattr__` and the `__all__` of a package.

    Args:
        package: Its `__name__`.
        names: What it offers of each of its modules.
    """
    homes = {name: f"{package}.{module}" for module, offered in names.items() for name in offered}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return find, sorted(homes)
