"""Results as JUnit XML, which CI systems show beside tests: one test per limit, and one per audit that must run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from recollect.files import write_text
from recollect.report.words import Naming, fit, get_own_id, render_sentence
from recollect.results.result import LimitCheck, Result
from recollect.results.summary_rows import build_summary_rows


def write_junit(results: Iterable[Result], file: Path, *, naming: Naming = get_own_id) -> None:
    """Write the results as JUnit XML: a limit that was exceeded is a failure, what could not be done an error.

    Args:
        results: Of one or more audits.
        file: The XML file.
        naming: How people and records are called.
    """
    write_text(file, render_junit(results, naming=naming))


def render_junit(results: Iterable[Result], *, naming: Naming = get_own_id) -> str:
    """The results as JUnit XML."""
    top = Element("testsuites", {"name": "recollect"})
    for result in results:
        _add_junit_suite(top, result, naming)
    for count in ("tests", "failures", "errors", "skipped"):
        top.set(count, str(sum(int(suite.get(count, "0")) for suite in top)))
    indent(top)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(top, encoding="unicode")}\n'


def _add_junit_suite(top: Element, result: Result, naming: Naming) -> None:
    """One audit as a JUnit suite: whether it ran, and each limit."""
    suite = SubElement(top, "testsuite", {"name": f"recollect.{result.audit}"})
    seconds = 0.0 if result.provenance is None else result.provenance.seconds
    ran = SubElement(
        suite, "testcase", {"classname": f"recollect.{result.audit}", "name": "audit", "time": f"{seconds:.3f}"}
    )
    undone = [each.error for each in result.failed]
    undone += [each.reason for each in result.skipped if each.finding is None]
    if undone:
        _add_junit_message(ran, "error", " ".join(undone))
    elif result.outcome == "inconclusive":
        _add_junit_message(ran, "skipped", f"Inconclusive: {result.outcome_code}")
    rows = [f"{row.title}: {row.both}" for row in build_summary_rows(result)]
    SubElement(ran, "system-out").text = "\n".join(
        fit(line) for line in [render_sentence(result.verdict, naming), *rows]
    )
    for limit in result.limits:
        _add_junit_limit(suite, result, limit)
    for tag, count in (("testcase", "tests"), ("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(count, str(sum(1 for _ in suite.iter(tag))))


def _add_junit_limit(suite: Element, result: Result, limit: LimitCheck) -> None:
    """One limit as a JUnit test."""
    test = SubElement(suite, "testcase", {"classname": f"recollect.{result.audit}", "name": fit(limit.limit)})
    if limit.status == "exceeded":
        value = "" if limit.value is None else f": the value is {limit.value:.6g}"
        _add_junit_message(test, "failure", f"The limit {limit.limit} was exceeded{value}.")
    elif limit.status == "not_checked":
        why = f": {limit.reason}" if limit.reason else "."
        _add_junit_message(test, "error", f"The limit {limit.limit} could not be checked{why}")


def _add_junit_message(test: Element, tag: str, message: str) -> None:
    """Why a JUnit test did not pass."""
    SubElement(test, tag, {"message": fit(message)}).text = fit(message)
