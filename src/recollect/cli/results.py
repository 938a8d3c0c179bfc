"""How results are shown in a terminal, and how a run ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.cli import console

if TYPE_CHECKING:
    from recollect.results.result import Result
    from recollect.session import AuditResult

MAX_ROWS = 20
"""Rows of a table that are listed in a terminal; the run folder has all."""


def show_result(shown: AuditResult, *, out: Path | None, as_json: bool) -> None:
    """The result on standard output, as a table or as JSON, and on standard error what else is to be known."""
    from recollect.results.summary import build_summary_rows

    result = shown.result
    if as_json:
        console.print_json(result.model_dump(mode="json"))
    else:
        rows = [[row.name, row.value, row.interval, row.n, row.reading] for row in build_summary_rows(result)]
        console.print_table(result.verdict_text, ["number", "value", "interval", "counted", "what it means"], rows)
        list_rows(result)
        for line in _list_remarks(result):
            console.say(line)
    if out is not None:
        console.say(f"The result is in {out}/results/{result.audit}.json.")
    elif result.tables:
        console.say(f"Give --out DIR to keep the result and its tables ({', '.join(result.tables)}).")


def list_rows(result: Result) -> None:
    """The first rows of the table that the audit declares as worth listing; corpus text is masked there already."""
    from recollect.report.presentations import find_presentation
    from recollect.report.tables import build_table

    declared = find_presentation(result.audit)
    if declared.listed not in result.tables_in_memory:
        return
    view = declared.tables.get(declared.listed)
    path = result.tables[declared.listed]
    table = build_table(declared.listed, result.tables_in_memory[declared.listed], view, path=path, show_text=True)
    rows = [[cell.words for cell in row] for row in table.rows[:MAX_ROWS]]
    if rows:
        more = f" (the first {len(rows)} of {table.total:,})" if len(rows) < table.total else ""
        console.print_table(f"{table.caption}{more}", list(table.headings), rows)


def say_where(folder: Path) -> None:
    """Say where the report is."""
    console.say(f"The report is in {folder}/report.html.")


def _list_remarks(result: Result) -> Sequence[str]:
    """What a reader of the numbers has to know, in one line each; why there are none is what the run ends with."""
    from recollect.results.result import render_text
    from recollect.results.summary import describe_count

    remarks = [f"Note: {render_text(note.text)}" for note in result.notes]
    remarks += [f"Withheld: {each.finding}: {each.reason}" for each in result.withheld]
    remarks += [f"Skipped: {each.finding}: {each.reason}" for each in result.skipped if each.finding is not None]
    remarks += [f"Dropped: {count:,} ({describe_count(reason)})" for reason, count in result.dropped.items()]
    return remarks + [f"Not tested: {each}" for each in result.untested]
