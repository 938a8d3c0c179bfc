"""Every refusal of this package has a code of its own, in place of its family's."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from recollect import corpora, errors

SOURCES = sorted(Path(corpora.__file__).parent.rglob("*.py"))
FAMILY = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_error_is_given_a_code(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    raised = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in FAMILY]
    without = [call.lineno for call in raised if not any(keyword.arg == "code" for keyword in call.keywords)]
    assert not without, f"{path}: no code in lines {without}"
