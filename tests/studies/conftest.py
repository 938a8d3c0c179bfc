"""What the tests of the studies share."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

STUDIES = Path(__file__).resolve().parents[2] / "studies"


@pytest.fixture(scope="module")
def nulls():
    """Modules of the study of false positives, by name; they are forgotten at the end."""
    yield from _import_from("nulls")


@pytest.fixture(scope="module")
def smollm2():
    """Modules of the study of a real language model, likewise."""
    yield from _import_from("smollm2")


def _import_from(study: str) -> Iterator[Callable[[str], ModuleType]]:
    """What imports modules of a study."""
    path, before = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(STUDIES / study))
    yield importlib.import_module
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(STUDIES)):
            del sys.modules[name]
