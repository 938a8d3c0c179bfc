"""Sentences of the removal audit that depend on how small or wide a share is."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from recollect.audits.removal.verdict import MORE, _describe_need, build_set_verdict


@pytest.mark.parametrize(("bound", "words"), [(0.0004, "less than 1% of them"), (0.101, "at most 10% of them")])
def test_a_share_that_rounds_to_nothing_is_not_said_to_be_nothing(bound, words):
    evidence = SimpleNamespace(
        audited=range(60), unit="record", gone_mixture=SimpleNamespace(bound_share=lambda level: bound), level=0.05
    )
    assert words in build_set_verdict("gone", evidence, confidence=0.95)


@pytest.mark.parametrize(("enough", "needed"), [(2, MORE), (40, "about 40 would be enough")])
def test_as_many_records_as_there_are_are_not_said_to_be_enough(enough, needed, monkeypatch):
    monkeypatch.setattr("recollect.audits.removal.verdict.find_inconclusive_code", lambda evidence: None)
    # of two audited records one is like any control, so that the mixture knows of one only
    mixture = SimpleNamespace(size=1, find_sufficient_size=lambda: enough)
    assert _describe_need(SimpleNamespace(audited=range(2), mixture=mixture)) == needed
