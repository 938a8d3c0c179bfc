"""YAML documents: what is refused, and by which code."""

from __future__ import annotations

import time

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


LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))
MERGES = "m0: &m0 {k: 1}\n" + "".join(f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 9)}]}}\n" for i in range(1, 30))
INSIDE_ITSELF = "a: &a [*a]\n"


@pytest.mark.parametrize("bomb", [LAUGHS, MERGES, INSIDE_ITSELF, "[" * 60 + "]" * 60, "# " + "x" * 5_000_000])
def test_a_document_that_expands_without_end_is_refused_at_once(bomb):
    began = time.monotonic()
    with refused("document_too_large"):
        Document.read(bomb, name="plan.yaml", do="")
    with refused("document_too_large"):
        list(parse_overrides([f"audits={bomb}"]))
    assert time.monotonic() - began < 5


def test_aliases_that_a_person_would_write_are_read():
    found = Document.read("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]\n", name="plan.yaml", do="")
    assert found.settings == {"a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": [{"x": 1}, {"x": 1}]}
