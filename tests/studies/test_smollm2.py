"""The study of a real language model: its page is what its results say."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def page(smollm2):
    return smollm2("page")


def test_the_page_is_written_from_the_results(page):
    results = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    assert page.PAGE.read_text(encoding="utf-8") == page.write_page(results)
    assert "{{" not in page.write_page(results)


@pytest.mark.parametrize(
    ("outcome", "truth", "judged"),
    [
        ("found", "found", "right"),
        ("not_found", "found", "**wrong**"),
        ("found", "not_found", "**wrong**"),
        ("inconclusive", "not_found", "undecided"),
        ("found", "open", "–"),
    ],
)
def test_a_verdict_is_judged_by_the_truth(page, outcome, truth, judged):
    assert page.judge({"outcome": outcome, "truth": truth}) == judged
