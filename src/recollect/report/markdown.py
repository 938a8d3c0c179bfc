"""The report as Markdown, short enough for a pull request."""

from __future__ import annotations

import re

from recollect.report.annex import CAVEATS
from recollect.report.answers import Answer
from recollect.report.questions import NOT_ASKED, Light
from recollect.report.report import Report
from recollect.report.words import fit

MARKS = {"red": "🔴", "amber": "🟠", "green": "🟢", "grey": "⚪"}
MOST_ROWS = 10
"""Rows of a table that are shown."""
MOST_CHARACTERS = 600
"""Of one text."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$^=])")
_LINKING = re.compile(r"(@|:(?=/)|www(?=\.))", re.IGNORECASE)


def markdown(report: Report) -> str:
    """The report as Markdown."""
    parts = [_heading(report), *(_answer(answer) for answer in report.answers), _end(report)]
    return "\n\n".join(parts) + "\n"


def escaped(text: object) -> str:
    r"""Words that Markdown takes as words: no markup, no link, no mention of anybody.

    >>> escaped("<b>*hi*</b> | [x](y)")
    '&lt;b&gt;\\*hi\\*&lt;/b&gt; \\| \\[x\\]\\(y\\)'
    """
    plain = fit(str(text), MOST_CHARACTERS)
    tame = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A word joiner shows nothing, and keeps pages that make links of addresses and names from doing so.
    return _LINKING.sub("\\1\u2060", _SPECIAL.sub(r"\\\1", tame))


def _heading(report: Report) -> str:
    """What was audited, and all answers."""
    rows = []
    for each in report.asked:
        rows += [[answer.result.question, _lamp(answer.light), answer.verdict] for answer in each.answers]
        if not each.answers:
            rows.append([each.question, _lamp(NOT_ASKED), ""])
    subject = [f"- {escaped(name)}: {escaped(value)}" for name, value in report.subject.items()]
    warnings = [f"> **Warning.** {escaped(warning)}" for warning in report.warnings]
    table = _table(["Question", "Answer", "In one sentence"], rows)
    return "\n\n".join(["# What this model remembers", escaped(report.headline), "\n".join(subject), *warnings, table])


def _answer(answer: Answer) -> str:
    """One audit."""
    result = answer.result
    parts = [f"## {escaped(result.question)}", f"{escaped(_lamp(answer.light))}: {escaped(answer.verdict)}"]
    parts += [f"> **{escaped(each.title)}** {escaped(each.text)}" for each in answer.remarks]
    for listing in answer.listings:
        rows = [[cell if isinstance(cell, str) else _lamp(cell) for cell in row] for row in listing.rows]
        parts += [f"**{escaped(listing.caption)}**", _table(list(listing.headings), rows)]
    if answer.rows:
        rows = [[row.name, row.value, row.interval, row.n, row.reading] for row in answer.rows]
        parts.append(_table(["Number", "Value", "Interval", "Counted", "How to read it"], rows))
    for table in answer.tables:
        shown = [[cell.words for cell in row] for row in table.rows[:MOST_ROWS]]
        of = f" (first {len(shown)} of {table.total:,})" if len(shown) < table.total else ""
        parts += [f"**{escaped(table.caption)}**{of}", _table(list(table.headings), shown)]
    return "\n\n".join(parts)


def _end(report: Report) -> str:
    """What was not tested, and what the report is not."""
    untested = "\n".join(f"- {escaped(limit)}" for limit in report.untested)
    more = f"{escaped(CAVEATS[0])} Figures, settings and the annex are in `report.html`."
    return f"## What was not tested\n\n{untested}\n\n{more}"


def _lamp(light: Light) -> str:
    """A light as a sign and words."""
    return f"{MARKS[light.colour]} {light.words}"


def _table(headings: list[str], rows: list[list[str]]) -> str:
    """A table."""
    cells = [[escaped(cell) for cell in row] for row in (headings, *rows)]
    lines = [cells[0], ["---"] * len(headings), *cells[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
