"""Errors say what was found and what to do, also after a journey between processes."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

from recollect import errors

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.RecollectError)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_the_journey_from_a_worker(kind):
    sent = kind("The file is empty.", do="Give another.", code="empty_file")
    received = pickle.loads(pickle.dumps(sent))  # noqa: S301 - what multiprocessing does
    assert type(received) is kind
    assert received.code == "empty_file"
    assert str(received) == "The file is empty.\n  Give another."


def test_a_refusal_carries_the_count_that_is_needed_between_processes():
    sent = errors.NotEnoughData("There are 3 controls.", code="too_few_controls", needed=19)
    assert pickle.loads(pickle.dumps(sent)).needed == 19  # noqa: S301 - what multiprocessing does
    assert errors.NotEnoughData("There are none.").needed is None


def test_every_error_of_the_library_has_a_code_of_its_own():
    names = {kind.__name__ for kind in KINDS}
    without = [
        f"{path.name}:{node.lineno}"
        for path in Path(errors.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
        if not any(keyword.arg == "code" for keyword in node.keywords)
    ]
    assert without == []
