"""JUnit XML, as a parser of CI reads it: limits are tests, what could not be done is an error, nobody is named."""

from __future__ import annotations

from xml.etree import ElementTree

from recollect.report.junit import render_junit, write_junit
from recollect.results import Failed, Result


def read(text):
    """Suites and their tests as CI counts them: name, and what became of it."""
    suites = ElementTree.fromstring(text)  # noqa: S314 - our own
    kinds = {"failure", "error", "skipped"}
    tests = [
        (case.get("classname"), case.get("name"), *(child.tag for child in case if child.tag in kinds))
        for case in suites.iter("testcase")
    ]
    return suites.attrib, tests


def test_every_limit_is_a_test(exposed, everything_said):
    counts, tests = read(render_junit([exposed().replace(**everything_said)]))
    assert {key: counts[key] for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
    name = "recollect.exposure"
    assert tests == [
        (name, "audit", "skipped"),
        (name, "exposure_bits_planted_9>20"),
        (name, "exposure_bits_planted_9.upper>7", "failure"),
        (name, "auc>0.6", "error"),
    ]


def test_an_audit_that_failed_is_an_error_and_one_that_ran_a_pass(exposed):
    broke = Result(
        audit="leakage",
        question="?",
        verdict="It broke.",
        outcome="inconclusive",
        outcome_code="failed",
        failed=(Failed(audit="leakage", code="broke", error="No <memory> & time."),),
    )
    text = render_junit([exposed(), broke])
    assert read(text)[1] == [("recollect.exposure", "audit"), ("recollect.leakage", "audit", "error")]
    assert "No &lt;memory&gt; &amp; time." in text


def test_people_are_called_as_everywhere(exposed, everything_said, tmp_path):
    file = tmp_path / "junit.xml"
    write_junit([exposed().replace(**everything_said)], file, naming=lambda mention: f"a {mention.kind}")
    text = file.read_text()
    assert "Of a user nothing can be determined." in text
    assert "ann" not in text


def test_control_characters_of_a_hostile_record_do_not_break_the_file(exposed):
    counts, _ = read(render_junit([exposed().replace(verdict="\x00\x1b[31m</testcase>\u202e")]))
    assert counts["tests"] == "1"
