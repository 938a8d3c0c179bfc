"""What all audits' results are built with."""

from __future__ import annotations

import re

import pytest

from recollect.audits.common.result_builder import build_refusal
from recollect.audits.exposure.audit import ExposureAudit
from recollect.errors import NotEnoughData
from recollect.results.result import render_text


@pytest.mark.parametrize("found", ["The corpus has 3 records.", "AUC needs members.", "a p-value needs 19 users."])
def test_a_refusal_is_reported_in_sentences_of_their_own(found):
    result = build_refusal(ExposureAudit(format="{digits:2}"), NotEnoughData(found, do="Give more.", code="too_few"))
    assert result.outcome_code == "too_few"
    assert result.skipped[0].reason == f"{found} Give more."
    assert render_text(result.verdict).endswith(found)
    assert not re.search(r": [A-Z]", render_text(result.verdict)), "no sentence begins after a colon"
