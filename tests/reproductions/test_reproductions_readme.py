"""READMEs of the reproductions: every figure comes from a results file."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

REPRODUCTIONS = Path(__file__).resolve().parents[2] / "reproductions"
PAPERS = sorted(file.parent.name for file in REPRODUCTIONS.glob("*/README.template.md"))


@pytest.fixture
def readme(monkeypatch):
    monkeypatch.syspath_prepend(str(REPRODUCTIONS))
    return importlib.import_module("common.readme")


@pytest.fixture
def results(readme, tmp_path):
    """Results of one study."""
    outcomes = sys.modules["common.outcomes"]
    figures = [
        outcomes.Figure("ema, 20 images: wrong, of 90", "6 of 6", 88),
        outcomes.Figure("ema, 5 images: wrong, of 90", None, 90),
        outcomes.Figure("share", 0.5, 0.123456789),
    ]
    outcome = outcomes.Outcome(title="Sizes", scale="Small.", figures=figures, details={"secret": 1})
    outcome.save(tmp_path / "work" / "results" / "sizes.json")
    readme.take_over(tmp_path / "work", tmp_path / "results")
    return readme.Results(tmp_path / "results")


@pytest.mark.parametrize("paper", PAPERS)
def test_a_readme_has_the_figures_of_its_results_files(readme, paper):
    folder = REPRODUCTIONS / paper
    template = (folder / readme.TEMPLATE).read_text(encoding="utf-8")
    expected = readme.filled(template, readme.Results(folder / "results"))
    assert (folder / readme.README).read_text(encoding="utf-8") == expected


def test_the_documentation_has_the_figures_of_the_results_files(readme):
    pages = {page: page.read_text(encoding="utf-8") for page in (REPRODUCTIONS.parent / "docs").rglob("*.md")}
    assert any(readme.MARKED.search(text) for text in pages.values())
    for page, text in pages.items():
        assert readme.marked(text, REPRODUCTIONS) == text, page


def test_some_readme_is_made_of_a_template():
    assert PAPERS


def test_results_are_taken_over_without_what_they_were_made_of(results):
    outcome = results.study("sizes")
    assert outcome.details == {}
    assert outcome.figures[2].ours == 0.123457


def test_a_figure_stands_where_the_template_names_it(readme, results):
    template = "{{sizes: share @.3f}}, {{sizes: share @%}}, {{sizes: share @paper}}, {{sizes: ema, 5 … @of}}"
    assert readme.filled(template, results) == "0.123, 12%, 0.50, 90 of 90"


def test_a_block_of_figures_is_a_table(readme, results):
    block = """```figures sizes
rows: twenty=20; 5
images | {row}
paper | ema, {row} images: wrong… @paper
ours | ema, {row} images: wrong… @of
```"""
    table = "| images | paper | ours |\n| --- | --- | --- |\n| twenty | 6 of 6 | 88 of 90 |\n| 5 | – | 90 of 90 |"
    assert readme.filled(block, results) == table


@pytest.mark.parametrize("spec", ["{{sizes: nothing}}", "{{sizes: ema…}}", "{{absent: share}}"])
def test_a_figure_that_is_not_there_or_not_one_is_refused(readme, results, spec):
    with pytest.raises(readme.MissingFigureError):
        readme.filled(spec, results)


def test_the_whole_table_of_a_study_is_filled_in_without_its_title(readme, results):
    assert readme.filled("{{table: sizes}}", results).startswith("Small.\n\n| | paper | ours |")


@pytest.mark.parametrize(("study", "text"), [("sizes", "now 90\n"), ("absent", "not yet\n")])
def test_a_text_is_chosen_by_whether_a_study_was_done(readme, results, study, text):
    template = f"<!-- if {study} -->\nnow {{{{sizes: ema, 5 …}}}}\n<!-- else -->\nnot yet\n<!-- end -->\n"
    assert readme.filled(template, results) == text


def test_a_marked_figure_of_a_page_is_written_anew_and_nothing_else(readme, results, tmp_path):
    (tmp_path / "paper").mkdir()
    (tmp_path / "results").rename(tmp_path / "paper" / "results")
    page = "before <!-- paper/sizes: share @.2f -->9.99<!-- / --> after 9.99"
    assert readme.marked(page, tmp_path) == "before <!-- paper/sizes: share @.2f -->0.12<!-- / --> after 9.99"
