"""The page: self-contained, escaped, and built so that a screen reader can follow it."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from html.parser import HTMLParser
from typing import get_args

import pytest

from recollect.report.figures.panel import Dot, Line
from recollect.report.html import read_template, render_html
from recollect.report.report import build_report
from recollect.report.words import fit


class Page(HTMLParser):
    """The tags of a page with their attributes, and the text inside styles and scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.inside = [], {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] in ("style", "script"):
            self.inside.setdefault(self.tags[-1][0], data)

    def all(self, *names):
        return [attributes for tag, attributes in self.tags if tag in names]


@pytest.fixture
def text(folder):
    return render_html(build_report(folder))


@pytest.fixture
def page(text):
    return Page(text)


def test_nothing_of_the_page_lies_elsewhere(text, page):
    assert "http:" not in text
    assert "https:" not in text
    assert all(link["href"].startswith("#") for link in page.all("a"))
    assert not page.all("link", "img", "iframe", "object", "embed", "form", "base")
    assert not any("src" in attributes for _, attributes in page.tags)


def test_the_policy_allows_the_one_style_and_the_one_script_and_nothing_else(page):
    (policy,) = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    digests = {tag: base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for tag, t in page.inside.items()}
    assert policy.startswith("default-src 'none';")
    assert f"style-src 'sha256-{digests['style']}'" in policy
    assert f"script-src 'sha256-{digests['script']}'" in policy
    assert "unsafe" not in policy
    assert not any("style" in attributes for _, attributes in page.tags)


def test_every_link_and_label_leads_somewhere(page):
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    named = [attributes["aria-labelledby"] for _, attributes in page.tags if "aria-labelledby" in attributes]
    assert {*named, *(link["href"][1:] for link in page.all("a"))} <= set(ids)


def test_those_who_cannot_see_it_can_follow(page):
    assert page.all("html")[0]["lang"] == "en"
    assert all(head.get("scope") in ("col", "row") for head in page.all("th"))
    assert all(picture["role"] == "img" and picture["aria-label"] for picture in page.all("svg"))
    assert len(page.all("h1")) == len(page.all("main")) == 1
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    # what scrolls can be reached by key
    scrolling = [at for _, at in page.tags if at.get("class", "").split()[:1] in (["scroll"], ["panels"])]
    assert scrolling
    assert all(at["tabindex"] == "0" for at in scrolling)


def test_the_page_says_what_was_found_and_what_was_not_tested(text):
    for words in (
        "The model memorised 4 of 8 secrets.",
        "Not tested",
        "Has this data set really been removed from the model?",
        "Other formats.",
        "The curve does not fit.",
        "Mean exposure.",
        "The secrets among random ones",
        "secret-37",
        "Evidence, not a certificate.",
        "tables/exposure/secrets.parquet",
        "2.13.0",
    ):
        assert words in text, words


def test_the_same_results_give_the_same_page(folder, text):
    assert render_html(build_report(folder)) == text


def test_a_page_is_small(text):
    assert len(text.encode()) < 200_000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines", "two lines"),
        ("\u202eabc", "\\u202eabc"),
        ("\x1b[31m", "\\x1b[31m"),
        ("héllo 漢字", "héllo 漢字"),
        ("x" * 5000, "x" * 2000 + " … (5,000 characters)"),
    ],
)
def test_words_are_made_fit(text, shown):
    assert fit(text) == shown


def test_what_is_spelt_out_does_not_grow_without_end():
    assert len(fit("\u202e" * 2000)) < 2100


def test_every_kind_of_mark_has_a_colour_of_its_own_in_light_and_dark():
    style = read_template("parts.css")
    for mark, kinds in (("dot", Dot), ("line", Line)):
        for kind in get_args(kinds):
            assert f".{mark}.{kind} {{" in style, (mark, kind)
            assert f".key.{kind} {{" in style, kind


def brightness(colour):
    """The relative luminance of a colour, as the Web Content Accessibility Guidelines have it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_what_figures_draw_stands_out_from_the_page_in_the_light_in_the_dark_and_on_paper():
    style = read_template("parts.css") + read_template("report.css")
    schemes = [
        dict(re.findall(r"--(\w+): (#\w{6});", block)) for block in re.findall(r":root {(.*?)}", style, re.DOTALL)
    ]
    assert len(schemes) == 3
    for scheme in schemes:
        page = brightness(scheme["page"])
        for kind in ("null", "found", "control", "quiet"):
            drawn = brightness(scheme[kind])
            assert (max(page, drawn) + 0.05) / (min(page, drawn) + 0.05) >= 3, (kind, scheme["page"])
