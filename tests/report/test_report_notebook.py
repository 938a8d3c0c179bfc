"""A result in a notebook: self-contained, escaped, with its numbers and figures, and no text of a corpus."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pyarrow as pa
import pytest

from recollect.report.notebook import KEY_NUMBERS, render_notebook_html
from recollect.report.report import build_report
from recollect.results import Note, Result

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'></style>&"


class Tags(HTMLParser):
    """The tags of a fragment, in order, those that are never closed apart."""

    def __init__(self, text):
        super().__init__()
        self.opened, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.opened.append((tag, dict(attrs)))
        self.open += [tag]

    def handle_startendtag(self, tag, attrs):
        self.opened.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_verdict_numbers_with_intervals_and_figures_are_there(folder, exposed):
    result = exposed()
    fragment = render_notebook_html(result, result.tables_in_memory)
    (answer,) = build_report(folder).answers
    for words in ("The model memorised 4 of 8 secrets.", "Found", answer.rows[0].title, answer.rows[0].both):
        assert words in fragment
    assert fragment.count("<svg") == sum(len(figure.panels) for figure in answer.figures) == 4
    for figure in answer.figures:
        assert figure.title in fragment


def test_it_is_one_fragment_that_loads_and_runs_nothing(exposed):
    result = exposed()
    tags = Tags(render_notebook_html(result, result.tables_in_memory))
    assert tags.open == []
    assert tags.opened[0] == ("div", {"class": "recollect-result"})
    names = {tag for tag, _ in tags.opened}
    assert not names & {"html", "head", "body", "script", "link", "img", "iframe", "a", "form", "input", "base"}
    assert not any("id" in attributes or "style" in attributes for _, attributes in tags.opened)
    assert not any(re.match("on|src|href", name) for _, attributes in tags.opened for name in attributes)


def test_the_style_reaches_no_further_than_the_fragment(exposed):
    style = re.search(r"<style>(.*?)</style>", render_notebook_html(exposed(), {}), re.DOTALL)[1]
    outside = re.sub(r"^\.recollect-result \{(.*)\}\s*$", "", style, count=1, flags=re.DOTALL)
    assert outside.strip() == ""
    assert style.count("{") == style.count("}")
    assert ":root" not in style
    assert not re.search(r"@import|url\(", style)


def test_hostile_strings_are_escaped(exposed, everything_said):
    result = Result(
        audit="evil",
        question=EVIL,
        verdict=EVIL,
        outcome="found",
        next_step=EVIL,
        notes=(Note(code="evil", text=EVIL),),
        findings=(exposed().findings[0].model_copy(update={"unit": EVIL, "reading": EVIL, "method": EVIL}),),
    )
    fragment = render_notebook_html(result, {})
    assert {tag for tag, _ in Tags(fragment).opened} & {"script", "img"} == set()
    assert fragment.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 7
    assert fragment.count("</style>") == 1


def test_no_text_of_a_corpus_is_in_it(exposed):
    rows = pa.table({"text": ["my pin is 4711"], "user": ["ann"]})
    made = exposed().replace(settings={"show_text": True, "source": "Dear Anna"}).with_tables(rows=rows)
    fragment = render_notebook_html(made, made.tables_in_memory)
    assert "4711" not in fragment
    assert "Dear Anna" not in fragment


@pytest.mark.parametrize("count", [KEY_NUMBERS, KEY_NUMBERS + 3])
def test_many_numbers_unfold(exposed, count):
    (finding,) = exposed().findings
    many = tuple(finding.model_copy(update={"name": f"number_{i}"}) for i in range(count))
    fragment = render_notebook_html(exposed().replace(findings=many), {})
    shown, _, unfolding = fragment.partition("<details>")
    assert shown.count('<th scope="row">') == KEY_NUMBERS
    assert unfolding.count('<th scope="row">') == count - KEY_NUMBERS


def test_without_its_tables_a_result_still_shows_its_numbers(exposed):
    fragment = render_notebook_html(exposed(), {})
    assert "<svg" not in fragment
    assert "Exposure Bits Planted 9" in fragment
