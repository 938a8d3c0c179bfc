"""The notebook runs from top to bottom, and its results display themselves."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import recollect

NOTEBOOK = json.loads((Path(__file__).resolve().parents[2] / "examples" / "notebook.ipynb").read_text(encoding="utf-8"))
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def run_cell(code: str, names: dict[str, object]) -> object:
    """What a cell shows, as notebooks have it: the value of its last line, if that is an expression."""
    lines = ast.parse(code)
    shown = lines.body.pop() if isinstance(lines.body[-1], ast.Expr) else None
    exec(compile(lines, "notebook", "exec"), names)  # noqa: S102 - our own notebook
    return None if shown is None else eval(compile(ast.Expression(shown.value), "notebook", "eval"), names)  # noqa: S307


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> list[object]:
    """What every cell shows."""
    names: dict[str, object] = {"__name__": "__main__"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("notebook"))
        return [run_cell(code, names) for code in CODE]


def test_the_notebook_tells_the_truth_of_a_model_that_memorised(shown):
    results = [value for value in shown if isinstance(value, recollect.AuditResult)]
    assert [(result.audit, result.outcome) for result in results] == [("membership", "found"), ("exposure", "found")]


def test_its_results_display_themselves_with_figures(shown):
    pages = [value._repr_html_() for value in shown if hasattr(value, "_repr_html_")]
    assert len(pages) == 4  # two results, and two tables of pandas
    assert sum("<svg" in page for page in pages) == 2


def test_it_is_a_notebook_as_git_should_keep_it():
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in NOTEBOOK["cells"]]
    assert len({*ids}) == len(ids)
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert {cell["cell_type"] for cell in NOTEBOOK["cells"]} == {"markdown", "code"}
