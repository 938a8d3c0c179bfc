"""The report as Markdown, short enough for a pull request."""

from __future__ import annotations

import re

from recollect.report.annex import CAVEATS
from recollect.report.audit_answer import Answer
from recollect.report.questions import NOT_EXAMINED, NOT_TESTED, Light
from recollect.report.report import Report
from recollect.report.words import fit
from recollect.results.advice import STEPS

MARKS = {"red": "🔴", "amber": "🟠", "green": "🟢", "grey": "⚪"}
MAX_ROWS = 10
"""Rows of a table that are shown."""
MAX_CHARACTERS = 600
"""Of one text."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$^=])")
_LINKING = re.compile(r"(@|:(?=/)|www(?=\.))", re.IGNORECASE)


def render_markdown(report: Report) -> str:
    """The report as Markdown."""
    sections = [
        _render_markdown_heading(report),
        *(_render_markdown_answer(answer) for answer in report.answers),
        _render_markdown_end(report),
    ]
    return "\n\n".join(sections) + "\n"


def escape_text(text: object) -> str:
    r"""Words that Markdown takes as words: no markup, no link, no mention of anybody.

    >>> escape_text("<b>*hi*</b> | [x](y)")
    '&lt;b&gt;\\*hi\\*&lt;/b&gt; \\| \\[x\\]\\(y\\)'
    """
    plain = fit(str(text), MAX_CHARACTERS)
    tame = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A word joiner shows nothing, and keeps pages that make links of addresses and names from doing so.
    return _LINKING.sub("\\1\u2060", _SPECIAL.sub(r"\\\1", tame))


def _render_markdown_heading(report: Report) -> str:
    """What was audited, and all answers, as Markdown."""
    rows = []
    for each in report.questions:
        rows += [
            [
                answer.result.question,
                _render_markdown_light(answer.light),
                answer.result.severity or "–",
                answer.verdict,
            ]
            for answer in each.answers
        ]
        if not each.answers:
            rows.append([each.question, _render_markdown_light(NOT_TESTED), "–", NOT_EXAMINED])
    subject = [f"- {escape_text(name)}: {escape_text(value)}" for name, value in report.subject.items()]
    warnings = [f"> **Warning.** {escape_text(warning)}" for warning in report.warnings]
    table = _render_markdown_table(["Question", "Answer", "Severity", "In short"], rows)
    models = _render_markdown_table(
        ["Model", "Audits", "Audited data", "Digest"],
        [[each.name, ", ".join(each.audits), each.corpora, each.digest] for each in report.models],
    )
    limits = [
        _render_markdown_table(
            ["Fails if", "Pass or fail", "Value", "Audit"],
            [
                [
                    limit.limit,
                    _render_markdown_light(light),
                    f"{limit.value:.4g}" if limit.value is not None else "–",
                    audit,
                ]
                for audit, limit, light in report.limits
            ],
        )
    ] * bool(report.limits)
    headline = f"**{escape_text(report.headline)}**"
    return "\n\n".join(["# What this model remembers", headline, "\n".join(subject), *warnings, table, models, *limits])


def _render_markdown_answer(answer: Answer) -> str:
    """One audit as Markdown."""
    result = answer.result
    sections = [
        f"## {escape_text(result.question)}",
        f"{escape_text(_render_markdown_light(answer.light))}: {escape_text(answer.verdict)}",
    ]
    if answer.meaning:
        sections.append(f"What it means: {escape_text(answer.meaning)}")
    titles = "; ".join(STEPS[name].title for name in answer.steps)
    if titles or answer.next_step:
        sections.append(f"What to do next: {escape_text(' '.join(filter(None, [answer.next_step, titles])))}")
    sections += [f"> **{escape_text(each.title)}** {escape_text(each.text)}" for each in answer.remarks]
    for listing in answer.listings:
        rows = [
            [cell if isinstance(cell, str) else _render_markdown_light(cell) for cell in row] for row in listing.rows
        ]
        sections += [f"**{escape_text(listing.caption)}**", _render_markdown_table(list(listing.headings), rows)]
    if answer.rows:
        rows = [[row.title, row.both, row.n, row.reading] for row in answer.rows]
        sections.append(_render_markdown_table(["Number", "Value (interval)", "Counted", "How to read it"], rows))
    for figure in answer.figures:
        if figure.withheld:
            sections.append(f"**{escape_text(figure.title)}**: withheld. {escape_text(figure.withheld)}")
    for table in answer.tables:
        shown = [[cell.words for cell in row] for row in table.rows[:MAX_ROWS]]
        of = f" (first {len(shown)} of {table.total:,})" if len(shown) < table.total else ""
        sections += [f"**{escape_text(table.caption)}**{of}", _render_markdown_table(list(table.headings), shown)]
        sections += [escape_text(table.withheld)] * bool(table.withheld)
    return "\n\n".join(sections)


def _render_markdown_end(report: Report) -> str:
    """What was not tested, and what the report is not, as Markdown."""
    untested = "\n".join(f"- {escape_text(limit)}" for limit in report.untested)
    more = f"{escape_text(CAVEATS[0])} Figures, settings and the annex are in `report.html`."
    return f"## What was not tested\n\n{untested}\n\n{more}"


def _render_markdown_light(light: Light) -> str:
    """A light as a sign and words of Markdown."""
    return f"{MARKS[light.colour]} {light.words}"


def _render_markdown_table(headings: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    cells = [[escape_text(cell) for cell in row] for row in (headings, *rows)]
    lines = [cells[0], ["---"] * len(headings), *cells[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
