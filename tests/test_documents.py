"""YAML documents: what is refused, and by which code."""

from __future__ import annotations

import pytest

from recollect.documents import Document, parse_overrides
from recollect.testing.refusals import refused


@pytest.mark.parametrize(
    ("text", "code"),
    [("a: [1", "not_yaml"), ("- a\n- b", "not_a_mapping"), ("a:\n  b: 1\n  b: 2", "repeated_key")],
)
def test_a_text_that_is_no_document_is_refused(text, code):
    with refused(code):
        Document.read(text, name="plan.yaml", do="Give a plan.")


@pytest.mark.parametrize(("item", "code"), [("epochs", "override_without_value"), ("epochs=[", "not_yaml")])
def test_an_override_that_sets_nothing_is_refused(item, code):
    with refused(code):
        list(parse_overrides([item]))


def test_a_complaint_names_the_line_of_the_deepest_section_that_is_there():
    document = Document.read("seed: 1\naudits:\n  leakage:\n    top_k: 3\n", name="plan.yaml", do="Give a plan.")
    assert document.locate(["audits", "leakage", "top_k"]) == "plan.yaml line 4"
    assert document.locate(["audits", "leakage", "alpha"]) == "plan.yaml line 3"
    assert document.locate(["corpora"]) == "plan.yaml"
