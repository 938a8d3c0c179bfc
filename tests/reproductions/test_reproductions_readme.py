"""READMEs of the reproductions: every figure comes from a results file."""

from __future__ import annotations

import importlib
import re
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
    outcome.keep(tmp_path / "results" / "sizes.json")
    outcome.keep(tmp_path / "results" / "earlier" / "old.json")
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


@pytest.mark.parametrize("paper", PAPERS)
def test_no_number_of_a_template_is_written_by_hand(readme, paper):
    by_hand = importlib.import_module("common.by_hand").numbers_by_hand
    assert not list(by_hand((REPRODUCTIONS / paper / readme.TEMPLATE).read_text(encoding="utf-8")))


def quoting(pages):
    """Paragraphs and tables of the documentation that quote a reproduction."""
    for page in pages:
        for paragraph in page.read_text(encoding="utf-8").split("\n\n"):
            if "reproductions/" in paragraph or "(paper" in paragraph:
                yield page.name, paragraph


def test_no_figure_that_the_documentation_quotes_of_a_reproduction_is_written_by_hand(readme):
    by_hand = importlib.import_module("common.by_hand").numbers_by_hand
    found = {
        (name, number)
        for name, paragraph in quoting((REPRODUCTIONS.parent / "docs").rglob("*.md"))
        for _, number in by_hand(paragraph)
        if "." in number
    }
    assert not found


def test_each_readme_and_page_is_no_longer_right_if_a_digit_of_a_figure_changes(readme):
    folder = REPRODUCTIONS / "huang2021"
    page = (REPRODUCTIONS.parent / "docs" / "methods" / "provenance.md").read_text(encoding="utf-8")
    wrong = page.replace("0.524", "0.522", 1)
    assert wrong != page
    assert readme.marked(wrong, REPRODUCTIONS) == page
    text = (folder / readme.README).read_text(encoding="utf-8")
    digits = [place for place, letter in enumerate(text) if letter.isdigit()]
    template = readme.filled((folder / readme.TEMPLATE).read_text(encoding="utf-8"), readme.Results(folder / "results"))
    for place in digits[:: len(digits) // 50]:
        changed = "7" if text[place] != "7" else "1"
        assert text[:place] + changed + text[place + 1 :] != template


@pytest.mark.parametrize("paper", PAPERS)
def test_every_study_of_a_paper_is_in_its_list_and_every_listed_study_exists(readme, paper):
    template = (REPRODUCTIONS / paper / readme.TEMPLATE).read_text(encoding="utf-8")
    files = {file.stem for file in (REPRODUCTIONS / paper / "studies").glob("*.py")}
    missing = {name for name in files if f"`{name}`" not in template}
    assert not missing
    stated = set(re.findall(r"\{\{(?:state|again): (\w+)", template))
    kept = {file.stem for file in (REPRODUCTIONS / paper / "results").rglob("*.json")}
    assert stated <= files | kept


@pytest.mark.parametrize("paper", PAPERS)
def test_a_readme_sums_up_in_one_sentence_what_was_confirmed(readme, paper):
    text = (REPRODUCTIONS / paper / readme.README).read_text(encoding="utf-8")
    sentence = readme.ONE_SENTENCE.search(text)[1]
    assert "we confirm" in sentence
    assert "not confirm" in sentence
    page = (REPRODUCTIONS.parent / "docs" / "methods" / "papers.md").read_text(encoding="utf-8")
    assert f"<!-- {paper}: in one sentence -->" in page


@pytest.mark.parametrize("paper", PAPERS)
def test_figures_that_are_not_of_the_studies_as_they_are_say_of_what_they_are(readme, paper):
    results = readme.Results(REPRODUCTIONS / paper / "results").studies
    assert all(outcome.origin for name, outcome in results.items() if name.startswith(readme.EARLIER))


def test_results_are_kept_without_what_they_were_made_of(results):
    outcome = results.study("sizes")
    assert outcome.details == {}
    assert outcome.figures[2].ours == 0.123457


def test_a_figure_stands_where_the_template_names_it(readme, results):
    template = "{{sizes: share @.3f}}, {{sizes: share @%}}, {{sizes: share @paper}}, {{sizes: ema, 5 … @of}}"
    assert readme.filled(template, results) == "0.123, 12%, 0.50, 90 of 90\n"


def test_a_block_of_figures_is_a_table(readme, results):
    block = """```figures sizes
rows: twenty=20; 5
images | {row}
paper | ema, {row} images: wrong… @paper
ours | ema, {row} images: wrong… @of
```"""
    table = "| images | paper | ours |\n| --- | --- | --- |\n| twenty | 6 of 6 | 88 of 90 |\n| 5 | – | 90 of 90 |"
    assert readme.filled(block, results) == f"{table}\n"


@pytest.mark.parametrize("spec", ["{{sizes: nothing}}", "{{sizes: ema…}}", "{{absent: share}}"])
def test_a_figure_that_is_not_there_or_not_one_is_refused(readme, results, spec):
    with pytest.raises(readme.MissingFigureError):
        readme.filled(spec, results)


def test_a_row_of_a_study_that_is_not_done_yet_is_left_out_of_a_table_so_far(readme, results):
    block = "```figures sizes\nrows so far: 20; 10\nimages | {row}\nours | ema, {row} images: wrong…\n```"
    assert readme.filled(block, results) == "| images | ours |\n| --- | --- |\n| 20 | 88 |\n"
    with pytest.raises(readme.MissingFigureError):
        readme.filled(block.replace(" so far", ""), results)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("{{state: sizes | scaled}}", "scaled"),
        ("{{state: old | scaled}}", "scaled (earlier run)"),
        ("{{state: absent | scaled}}", "**not done yet** (the study is written)"),
        ("{{scale: sizes}}", "Small."),
        ("{{earlier/old: share @both}}", "0.50 \\| 0.12"),
    ],
)
def test_a_list_says_whether_a_study_was_done(readme, results, spec, text):
    assert readme.filled(spec, results) == f"{text}\n"


def test_the_table_of_a_study_that_was_run_again_follows_and_nothing_if_it_was_not(readme, results):
    assert readme.filled("a\n\n{{again: sizes}}\n\n{{again: absent}}\n\nb", results).startswith("a\n\n### Sizes\n")
    assert readme.filled("a\n\n{{again: absent}}\n\nb", results) == "a\n\nb\n"


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


def test_a_marked_table_of_a_page_is_written_anew(readme, results, tmp_path):
    (tmp_path / "paper").mkdir()
    (tmp_path / "results").rename(tmp_path / "paper" / "results")
    spec = "<!-- figures paper/sizes\nrows: share\n | {row}\nours | {row} @.2f\n-->"
    page = f"{spec}\n\n| 9.99 |\n\n<!-- end of figures -->"
    table = "| | ours |\n| --- | --- |\n| share | 0.12 |"
    assert readme.marked(page, tmp_path) == f"{spec}\n\n{table}\n\n<!-- end of figures -->"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Tables 3a, 4 and 5 of ResNet-18, M6 and k = 100 in section 6.3: {{study: share}} of `5` since 2.5", ["2.5"]),
        ("AUC <!-- paper/study: share -->0.52<!-- / --> and 0.53", ["0.53"]),
        ("<!-- figures paper/study\nrows: 1\n-->\n\n| 0.5 |\n\n<!-- end of figures --> 12 of 30", ["12", "30"]),
        ("version 0.1.0 of 10⁹ (Huang et al. 2021)", []),
    ],
)
def test_a_number_is_by_hand_if_it_is_no_figure_no_name_and_no_part_of_a_paper(readme, text, numbers):
    by_hand = importlib.import_module("common.by_hand").numbers_by_hand
    assert [number for _, number in by_hand(text)] == numbers
