"""What the tests of the studies share."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

STUDIES = Path(__file__).resolve().parents[2] / "studies"


@pytest.fixture(scope="module")
def nulls():
    """Modules of the study of false positives, by name; they are forgotten at the end."""
    path, before = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(STUDIES / "nulls"))
    yield importlib.import_module
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(STUDIES)):
            del sys.modules[name]
