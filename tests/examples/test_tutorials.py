"""The tutorials: notebooks that run from top to bottom, kept with what they show, and their pages."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]
TUTORIALS = runpy.run_path(str(HOME / "examples" / "tutorials" / "execute.py"))
NOTEBOOKS = TUTORIALS["list_notebooks"]()


def read(notebook):
    return json.loads(notebook.read_text(encoding="utf-8"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_page_of_a_tutorial_is_its_notebook(notebook):
    page = HOME / "docs" / "tutorials" / f"{notebook.stem}.md"
    assert page.read_text(encoding="utf-8") == TUTORIALS["render_page"](read(notebook), notebook.stem)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tutorial_is_kept_executed_and_small(notebook):
    cells = read(notebook)["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert any(cell.get("outputs") for cell in cells)
    assert notebook.stat().st_size < 30_000
    assert "/tmp/" not in notebook.read_text(encoding="utf-8")  # noqa: S108 - no path of the machine that ran it


def test_the_five_tutorials_are_there():
    names = ["before-shipping", "black-box", "clinical-bert", "deletion-request", "privacy-trade-off"]
    assert [path.stem for path in NOTEBOOKS] == names


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tutorial_runs_from_top_to_bottom_and_tells_the_truth(notebook):
    TUTORIALS["execute"](notebook)  # its cells assert the outcome that is known
