"""Snapshots of wording: tests assert codes and numbers, and one committed text file per audit keeps its sentences."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from recollect.errors import RecollectError
from recollect.results.result import Result, render_text

UPDATE: Final = "RECOLLECT_UPDATE_WORDING"
"""The environment variable that, if set to anything, has snapshots written anew instead of compared."""


def check_wording(cases: Mapping[str, Result | RecollectError], snapshot: Path) -> None:
    """Compare all sentences of some results and refusals with a committed text file.

    After a deliberate change set the variable `RECOLLECT_UPDATE_WORDING`, run the test again and read the diff.

    Args:
        cases: Results, or errors that were raised, by what is special about each.
        snapshot: The text file, such as `Path(__file__).with_name("wording.txt")`.

    Raises:
        AssertionError: They differ, or there is no such file; the message shows the difference.
    """
    found = render_wording(cases)
    if os.environ.get(UPDATE):
        snapshot.write_text(found, encoding="utf-8")
        return
    kept = snapshot.read_text(encoding="utf-8") if snapshot.exists() else ""
    if found != kept:
        lines = difflib.unified_diff(kept.splitlines(), found.splitlines(), str(snapshot), "now", lineterm="", n=1)
        raise AssertionError("\n".join([f"The wording has changed. If it should, set {UPDATE}=1.", *lines]))


def render_wording(cases: Mapping[str, Result | RecollectError]) -> str:
    """All sentences of some results and refusals as plain text, one per line, each after its code or name.

    A sentence that an earlier case had too is not repeated; what it is about is listed under "as above".

    >>> error = RecollectError("None is given.", do="Give one.", code="missing_model")
    >>> print(render_wording({"no model": error, "no model again": error}))
    == no model
    error [missing_model]: None is given. Give one.
    <BLANKLINE>
    == no model again
    as above: error [missing_model]
    <BLANKLINE>
    """
    seen, sections = set[tuple[str, str]](), []
    for title, case in cases.items():
        lines = list(_iter_wording_lines(case))
        new = [f"{what}: {sentence}" for what, sentence in lines if (what, sentence) not in seen]
        old = [what for what, sentence in lines if (what, sentence) in seen]
        sections.append("\n".join([f"== {title}", *new, *([f"as above: {', '.join(old)}"] if old else []), ""]))
        seen.update(lines)
    return "\n".join(sections)


def _iter_wording_lines(case: Result | RecollectError) -> Iterator[tuple[str, str]]:
    """Every sentence of a result, or what an error says, after what it is about."""
    if isinstance(case, RecollectError):
        yield f"error [{case.code}]", f"{case.found} {case.do}".rstrip()
        return
    yield f"verdict [{case.outcome_code or case.outcome}]", case.verdict_text
    yield from ((f"note [{note.code}]", render_text(note.text)) for note in case.notes)
    yield from ((f"skipped {each.finding or 'all'} [{each.code}]", each.reason) for each in case.skipped)
    yield from ((f"withheld {each.finding} [{each.code}]", each.reason) for each in case.withheld)
    if case.guard is not None:
        yield from ((f"guard [{check.name}]", check.text) for check in case.guard.checks)
    for finding in case.findings:
        yield finding.name, f"({finding.unit}; {finding.method}) {finding.reading}"
        if finding.why_no_interval is not None:
            yield f"{finding.name}, no interval", finding.why_no_interval
        if finding.next_step is not None:
            yield f"next step after {finding.name}", finding.next_step
    if case.next_step is not None:
        yield "next step", case.next_step
    yield from ((f"untested {index}", sentence) for index, sentence in enumerate(case.untested, 1))
