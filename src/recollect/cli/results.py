"""How results are shown in a terminal, and how a run ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.cli import console

if TYPE_CHECKING:
    from recollect.report.words import Naming
    from recollect.results.result import Result
    from recollect.session import AuditResult

MAX_NUMBERS = 5
"""Findings that are shown in a terminal; report and run folder have all."""
MAX_REMARKS = 2
"""Remarks that are shown beneath the numbers, likewise."""


def show_result(shown: AuditResult, *, out: Path | None, as_json: bool) -> None:
    """The result on standard output, in a dozen lines or as JSON, and on standard error what else is to be known."""
    result = shown.result
    if as_json:
        console.print_json(result.model_dump(mode="json"))
    else:
        _print_verdict(result, shown.naming)
        list_rows(result, shown.naming)
        for line in _list_remarks(result, shown.naming, kept=out is not None):
            console.say(line)
    if out is None and result.tables:
        console.say(f"Give --out DIR to keep the result, its tables ({', '.join(result.tables)}) and a report.")


def _print_verdict(result: Result, naming: Naming) -> None:
    """The verdict, and the first numbers with their intervals."""
    from recollect.report.presentations import find_presentation
    from recollect.report.questions import choose_light
    from recollect.results.result import render_text
    from recollect.results.summary_rows import build_summary_rows

    declared = find_presentation(result.audit)
    findings = sorted(result.findings, key=lambda finding: finding.name not in declared.key_findings)
    first = result.replace(findings=tuple(findings[:MAX_NUMBERS]))
    rows = [
        # why there is no interval is long, and is in the report
        [row.name.replace("_", " "), row.value, "" if finding.interval is None else row.interval]
        for row, finding in zip(build_summary_rows(first), first.findings, strict=True)
    ]
    verdict = render_text(result.verdict, naming)
    console.print_grid(f"{result.audit}: {choose_light(result, declared).words}. {verdict}", rows)


def list_rows(result: Result, naming: Naming) -> None:
    """The first rows of the table that the audit declares as worth listing; corpus text is masked there already."""
    from recollect.report.presentations import find_presentation
    from recollect.report.tables import build_table, narrow_view

    declared = find_presentation(result.audit)
    if declared.listed not in result.tables_in_memory:
        return
    whole, path = result.tables_in_memory[declared.listed], result.tables[declared.listed]
    view = narrow_view(declared.listed, whole, declared.tables.get(declared.listed))
    table = build_table(declared.listed, whole, view, path=path, show_text=True, naming=naming)
    rows = [[cell.words for cell in row] for row in table.rows[: view.terminal_rows]]
    if rows:
        more = f" ({len(rows)} of {table.total:,})" if len(rows) < table.total else ""
        console.print_grid(f"{table.caption}{more}", rows, headings=table.headings)


def say_where(folder: Path) -> None:
    """Say where the report is."""
    console.say(f"The report is in {folder}/report.html.")


def _list_remarks(result: Result, naming: Naming, *, kept: bool) -> Sequence[str]:
    """The first note, what is missing from the numbers, other notes; and how much else there is to read."""
    from recollect.results.result import render_text
    from recollect.results.summary_rows import describe_count, group_withheld

    missing = [f"Withheld: {each.names}: {each.reason}" for each in group_withheld(result)]
    missing += [f"Skipped: {each.finding}: {each.reason}" for each in result.skipped if each.finding is not None]
    missing += [f"Dropped: {count:,} ({describe_count(reason)})" for reason, count in result.dropped.items()]
    notes = [f"Note: {render_text(note.text, naming)}" for note in result.notes]
    remarks = [*notes[:1], *missing, *notes[1:]]
    more = {
        "more number": len(result.findings[MAX_NUMBERS:]),
        "more remark": len(remarks[MAX_REMARKS:]),
        "limit of what was tested": len(result.untested),
    }
    counted = [f"{n} {what if n == 1 else _pluralise(what)}" for what, n in more.items() if n]
    where = "In the report" if kept else "Not shown (--out DIR writes a report, --json prints all)"
    return [*remarks[:MAX_REMARKS], *([f"{where}: {', '.join(counted)}."] if counted else [])]


def _pluralise(what: str) -> str:
    """Several of them.

    >>> _pluralise("limit of what was tested"), _pluralise("more number")
    ('limits of what was tested', 'more numbers')
    """
    head, of, rest = what.partition(" of ")
    return f"{head}s{of}{rest}"
