"""Markdown for pull requests: tables, and nothing of a record is markup."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from recollect.report.markdown import escape_text, render_markdown
from recollect.report.report import build_report
from recollect.results import Failed, Note, Result

render = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render


def test_the_answers_and_the_numbers_are_tables(folder):
    page = render(render_markdown(build_report(folder)))
    assert page.count("<table>") == 4
    assert "🔴 Found" in page
    assert "⚪ Not tested" in page
    assert "The model memorised 4 of 8 secrets." in page
    assert "first 10 of 38" in page
    assert "not a certificate" in page


def test_what_failed_was_skipped_or_is_missing_is_reported(folder, exposed):
    (folder.path / "tables/exposure/secrets.parquet").unlink()
    assert "Something is missing" in render_markdown(build_report(folder))
    assert "The curve does not fit" in render_markdown(build_report(folder))
    folder.write_result(exposed(dropped={"audited.empty": 1234}))
    assert "<strong>Left out:</strong> 1,234 (audited: empty)" in render(render_markdown(build_report(folder)))


def test_no_string_of_a_result_is_markup(folder, exposed):
    evil = "<img src=x> [a](b) | `c` **d**"
    rows = pa.table({evil: [evil], "text": [evil]})
    result = Result(
        audit="plugin",
        question=evil,
        verdict=evil,
        outcome="found",
        untested=(evil,),
        notes=(Note(code="evil", text=evil),),
        failed=(Failed(audit="plugin", code="broke", error=evil),),
    )
    folder.write_result(result.with_tables(rows=rows).with_provenance(exposed().provenance))
    page = render(render_markdown(build_report(folder)))
    assert page.count("<strong>d</strong>") == page.count("<img") == page.count("<a ") == 0
    assert page.count("&lt;img src=x&gt; [a](b) | `c` **d**") >= 8


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "[click](javascript:alert(1)) ![i](http://x/y.png)",
        "`code` **bold** _em_ ~~gone~~ # head",
        "| a | b |\n|---|---|",
        "\\`tick\\` \\| &lt;b&gt; &#60;b&#62;",
        "<http://example.org> http://example.org www.example.org a@example.org @everybody",
    ],
)
def test_hostile_text_is_only_text(text):
    page = render(f"| head |\n| --- |\n| {escape_text(text)} |\n")
    assert re.findall(r"</?([a-z]+)", page.partition("<tbody>")[2]) == ["tr", "td", "td", "tr", "tbody", "table"]
    assert not re.search(r"https?://|www\.|@\w", escape_text(text))


@settings(deadline=None, max_examples=200)
@given(text=st.text(alphabet="<>&|`*_[]()!#~\\ \n-+=ab1.:/@\"'", max_size=40))
def test_any_text_stays_in_its_cell(text):
    page = render(f"| x | y |\n| --- | --- |\n| a{escape_text(text)}b | c |\n")
    assert page.count("<td>") == 2
    assert not re.search(r"<(?!/?(table|thead|tbody|tr|th|td)>)", page)
