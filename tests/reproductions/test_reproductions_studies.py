"""Every study of the reproductions can be loaded, so that a renamed module does not break one unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

REPRODUCTIONS = Path(__file__).resolve().parents[2] / "reproductions"
PAPERS = sorted(file.parent.name for file in REPRODUCTIONS.glob("*/run.py"))


@pytest.mark.parametrize("paper", PAPERS)
def test_the_studies_of_a_paper_are_those_that_it_runs(load, paper):
    listed = load(paper, "run").STUDIES
    files = {file.stem for file in (REPRODUCTIONS / paper / "studies").glob("*.py")}
    assert files == set(listed)
    assert all(callable(load(paper, f"studies.{name}").study) for name in listed)
