"""The table of removal's errors in the docs is written from the study's results."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

STUDY = Path(__file__).resolve().parents[2] / "studies" / "removal"


@pytest.fixture(scope="module")
def table():
    """The module that writes it."""
    spec = importlib.util.spec_from_file_location("removal_table", STUDY / "table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_table_of_the_results(table):
    text = table.PAGE.read_text(encoding="utf-8")
    assert text == table.insert_table(text, json.loads(table.RESULTS.read_text(encoding="utf-8")))


def test_counts_are_added_over_sizes_and_by_the_share_that_is_in(table):
    where = {"part": "texts", "kind": "weak", "rule": "0.2.0", "trainings": 2, "controls": 400, "source": "fresh"}
    told = {"still there": 3, "gone": 1, "worlds": 10, "covered": 9, "intervals": 10}
    rows = [{**where, **told, "size": size, "in": share} for size in (5, 20, 100) for share in (0.0, 0.5, 1.0)]
    far = {**rows[0], "source": "far", "still there": 10}
    line = table.write_table([*rows, far]).splitlines()[-1]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:4] == ["texts", "weak", "0.2.0", "2"]
    assert cells[4:] == [
        *("6 of 20", "3 of 10", "–"),
        "9 of 30",
        "6 of 60",
        *("3 of 30", "–"),
        *("27 of 30", "27 of 30", "27 of 30"),
    ]
