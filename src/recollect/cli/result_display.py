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

MAX_LINES = 12
"""Lines that an audit takes in a terminal; report and run folder have the rest."""
MIN_NUMBERS = 3
"""Findings that a terminal shows even where the verdict is long."""
CLOSING_LINES = 2
"""Lines beneath the numbers: how much else there is to read, and where."""


def show_result(shown: AuditResult, *, out: Path | None, as_json: bool) -> None:
    """The result on standard output, in a dozen lines or as JSON, and on standard error what else is to be known."""
    result = shown.result
    if as_json:
        console.print_json(result.model_dump(mode="json"))
    else:
        lines, numbers = _display_verdict(result, shown.naming)
        left = MAX_LINES - CLOSING_LINES - lines - numbers
        left -= display_rows(result, shown.naming, most=left)
        for line in _choose_displayed_remarks(result, shown.naming, most=left):
            console.say(line)
        if more := _count_rest(result, numbers):
            where = "In the report" if out is not None else "Not shown (--out DIR writes a report, --json prints all)"
            console.say(f"{where}: {more}.")
    if out is None and result.tables:
        console.say(f"Give --out DIR to keep the result, its tables ({', '.join(result.tables)}) and a report.")


def _display_verdict(result: Result, naming: Naming) -> tuple[int, int]:
    """Display the verdict, and the first numbers with their intervals; returns how many lines each took."""
    from recollect.report.presentations import find_presentation
    from recollect.report.questions import choose_light
    from recollect.results.result import render_text
    from recollect.results.summary_rows import build_summary_rows, title_name

    declared = find_presentation(result.audit)
    light, grade = choose_light(result, declared).words, f", severity {result.severity}" if result.severity else ""
    verdict = f"{title_name(result.audit)}: {light}{grade}. {render_text(result.verdict, naming)}"
    lines = console.count_lines(verdict)
    most = max(MIN_NUMBERS, min(declared.terminal_findings, MAX_LINES - CLOSING_LINES - lines))
    findings = sorted(result.findings, key=lambda finding: finding.name not in declared.key_findings)
    first = result.replace(findings=tuple(findings[:most]))
    rows = [[row.title, row.both] for row in build_summary_rows(first)]
    console.print_grid(verdict, rows)
    return lines, len(rows)


def display_rows(result: Result, naming: Naming, *, most: int) -> int:
    """Display the first rows of the table that the audit declares as worth listing, if there is room for one.

    Corpus text is masked there already. Tells how many lines it took.

    Args:
        result: What the audit found.
        naming: How people and records are called.
        most: How many lines there are for title, headings and rows.
    """
    from recollect.report.presentations import find_presentation
    from recollect.report.tables import build_table, merge_id_columns, narrow_view
    from recollect.report.withholding import withhold_columns

    declared = find_presentation(result.audit)
    if declared.listed not in result.tables_in_memory:
        return 0
    whole, path = result.tables_in_memory[declared.listed], result.tables[declared.listed]
    seen = withhold_columns(result, merge_id_columns(result, whole), declared.tables.get(declared.listed))
    view = narrow_view(declared.listed, seen.table, seen.view)
    table = build_table(declared.listed, seen.table, view, path=path, show_text=True, naming=naming)
    rows = [[cell.words for cell in row] for row in table.rows[: max(0, min(view.terminal_rows, most - 2))]]
    if not rows:
        return 0
    more = f" ({len(rows)} of {table.total:,})" if len(rows) < table.total else ""
    console.print_grid(f"{table.caption}{more}", rows, headings=table.headings)
    return len(rows) + 2


def display_report_path(folder: Path) -> None:
    """Display where the report of a result is."""
    console.say(f"The report is in {folder}/report.html.")


def write_junit_file(results: Sequence[AuditResult], file: Path | None) -> None:
    """Write the displayed results as JUnit XML, if a file for it is named."""
    if file is None:
        return
    from recollect.report.junit import write_junit

    write_junit([each.result for each in results], file, naming=results[0].naming)
    console.say(f"The JUnit file is {file}.")


def _choose_displayed_remarks(result: Result, naming: Naming, *, most: int) -> list[str]:
    """As many remarks as the display has room for: the first note, what the numbers lack, other notes."""
    from recollect.results.result import render_text
    from recollect.results.summary_rows import group_withheld

    missing = [f"Withheld: {each.names}: {each.reason}" for each in group_withheld(result)]
    missing += [f"Skipped: {each.finding}: {each.reason}" for each in result.skipped if each.finding is not None]
    notes = [f"Note: {render_text(note.text, naming)}" for note in result.notes]
    chosen = list[str]()
    for line in [*notes[:1], *missing, *notes[1:]]:
        most -= console.count_lines(line)
        if most < 0:
            break
        chosen.append(line)
    return chosen


def _count_rest(result: Result, numbers: int) -> str:
    """How much else there is to read about a result, of which so many numbers are shown; empty if there is nothing."""
    more = {
        "more number": len(result.findings[numbers:]),
        "withheld number": len(result.withheld),
        "skipped number": sum(each.finding is not None for each in result.skipped),
        "note": len(result.notes),
        "kind of records left out": len(result.dropped),
        "untested matter": len(result.untested),
    }
    return ", ".join(f"{n} {what if n == 1 else _pluralise_displayed(what)}" for what, n in more.items() if n)


def _pluralise_displayed(what: str) -> str:
    """The plural of what is displayed.

    >>> _pluralise_displayed("kind of records left out"), _pluralise_displayed("more number")
    ('kinds of records left out', 'more numbers')
    """
    head, of, rest = what.partition(" of ")
    return f"{head}s{of}{rest}"
