"""What the tests of the reproductions share."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

REPRODUCTIONS = Path(__file__).resolve().parents[2] / "reproductions"


@pytest.fixture
def load(monkeypatch):
    """Modules of one paper's folder; those of another paper have the same names, so they are forgotten at the end."""

    def loaded(paper, name):
        monkeypatch.syspath_prepend(str(REPRODUCTIONS))
        monkeypatch.syspath_prepend(str(REPRODUCTIONS / paper))
        return importlib.import_module(name)

    path = list(sys.path)
    yield loaded
    sys.path[:] = path  # a paper's run.py adds to it
    for name in [name for name, module in sys.modules.items() if _of_a_paper(module)]:
        del sys.modules[name]


def _of_a_paper(module):
    """Whether a module, or a folder of modules, is one of a paper's."""
    names = getattr(module, "__dict__", {})  # some modules of torch answer to any name
    places = [names.get("__file__"), *(names.get("__path__") or ())]
    return any(str(place).startswith(str(REPRODUCTIONS)) for place in places if place)
