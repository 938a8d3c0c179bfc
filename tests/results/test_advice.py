"""Severity and next step: from what the audit declares, raised by grave findings, and never over its own words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recollect.results import Finding, Result, Skipped
from recollect.results.advice import DEFAULT_ADVICE, NOTHING_DECIDED, STEPS, Advice, add_advice, choose_advice

DECLARED = {
    "found": Advice(meaning="Bad.", severity="medium", steps=("retrain", "notify"), raised_by=("named",)),
    "not_found": Advice(meaning="Good.", severity="none"),
}
DOCS = Path(__file__).parents[2] / "docs"


def result(value=0.0, **fields):
    finding = Finding(
        name="named", value=value, why_no_interval="x", unit="share", n={"users": 1}, method="m", reading="r"
    )
    made = {"audit": "leakage", "question": "?", "verdict": "!", "outcome": "found", "findings": (finding,)}
    return Result(**made | fields)


def test_a_grave_finding_raises_the_severity_and_says_what_to_do():
    mild, grave = add_advice(result(), DECLARED), add_advice(result(0.5), DECLARED)
    assert (mild.severity, mild.findings[0].severity) == ("medium", None)
    assert (grave.severity, grave.findings[0].severity) == ("high", "high")
    assert grave.findings[0].next_step == STEPS["retrain"].text
    assert grave.next_step == mild.next_step == "Retrain without the data; inform those responsible."


def test_what_an_audit_says_itself_is_kept():
    own = add_advice(result(0.5, severity="low", next_step="Wait."), DECLARED)
    assert (own.severity, own.next_step) == ("low", "Wait.")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"outcome": "not_found"}, DECLARED["not_found"]),
        ({"outcome": "inconclusive", "outcome_code": "no_power"}, NOTHING_DECIDED),
        ({"findings": (), "skipped": (Skipped(audit="leakage", code="too_few", reason="No."),)}, None),
    ],
)
def test_the_outcome_decides(fields, expected):
    assert choose_advice(result(**fields), DECLARED) == expected


def test_an_audit_without_advice_gets_the_default_of_its_outcome():
    found, gone = add_advice(result(), {}), add_advice(result(outcome="not_found"), {})
    assert (found.severity, found.next_step) == ("medium", "Hold the release; inform those responsible.")
    assert (gone.severity, gone.next_step) == ("none", "Repeat the audit when something changes.")
    assert choose_advice(result(outcome="not_found"), {"found": DECLARED["found"]}) is DEFAULT_ADVICE["not_found"]


def test_every_step_has_its_heading_in_the_docs_and_its_pages_exist():
    headings = re.findall(
        r"^## .*\{ ?#([a-z-]+) ?\}$", (DOCS / "how-to" / "next-steps.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert headings == [*STEPS]
    assert all((DOCS / page).exists() for step in STEPS.values() for page in step.pages)
