"""What one audit found, with its figures and tables, ready to be shown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from recollect.errors import PlanError, StoreError
from recollect.report.figures.figure import Figure
from recollect.report.presentations import find_presentation, load_function
from recollect.report.questions import SEVERITIES, Light, choose_light
from recollect.report.remarks import Listing, Remark, build_listings, build_remarks
from recollect.report.subject import shorten_names
from recollect.report.tables import Table, build_table, merge_id_columns
from recollect.report.withholding import withhold_columns, withhold_figure
from recollect.report.words import Naming, get_own_id, render_sentence
from recollect.results.advice import choose_advice, summarise_steps
from recollect.results.presentation import GENERIC, Presentation, TableView
from recollect.results.result import Finding, Result
from recollect.results.run_folder import RunFolder
from recollect.results.summary_rows import Row, build_summary_rows, title_name
from recollect.results.text_masks import mask_settings


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one audit found, ready to be shown."""

    result: Result
    presentation: Presentation
    light: Light
    verdict: str
    meaning: str
    """What it means for the people in the data, in plain words; empty where nothing was done."""
    steps: tuple[str, ...]
    """What to do about it, by name, the first thing first."""
    next_step: str
    """What to do about it in one sentence, where the audit has its own; empty if the steps say it all."""
    settings: dict[str, str]
    """The settings of the audit in words."""
    rows: tuple[Row, ...]
    """One per finding, in its order."""
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    remarks: tuple[Remark, ...]
    """What must be known beside the numbers, the gravest first."""
    listings: tuple[Listing, ...]
    """Checks that were made: limits, comparability."""

    @property
    def title(self) -> str:
        """The name of the audit as people write it."""
        return title_name(self.result.audit)

    @property
    def severity(self) -> Light | None:
        """How grave it is; None where that is not known."""
        return None if self.result.severity is None else SEVERITIES[self.result.severity]

    @property
    def origin(self) -> dict[str, str]:
        """What the result came from, in words; paths without the folders that nobody needs to tell models apart."""
        trace = {} if self.result.provenance is None else self.result.provenance.model_dump(mode="json")
        versions, digests, models = (trace.pop(name, {}) for name in ("versions", "digests", "models"))
        flat = trace | versions | {f"digest of {role}": digest for role, digest in digests.items()}
        short = shorten_names(facts["name"] for facts in models.values())
        for role, facts in models.items():
            flat |= {f"{fact} of {role}": value for fact, value in (facts | {"name": short[facts["name"]]}).items()}
        return {name: _format_setting(value) for name, value in flat.items() if value is not None}


def read_answer(folder: RunFolder, result: Result, *, show_text: bool, naming: Naming = get_own_id) -> Answer:
    """One result of a run folder with its figures and tables."""
    tables, unread = _read_answer_tables(folder, result)
    return build_answer(result, tables, show_text=show_text, naming=naming, unread=unread)


def build_answer(
    result: Result,
    tables: Mapping[str, pa.Table],
    *,
    show_text: bool = False,
    naming: Naming = get_own_id,
    unread: Sequence[str] = (),
) -> Answer:
    """One result with its figures and tables.

    Args:
        result: What the audit found.
        tables: Those of its tables that can be read, by name, and more for the figures.
        show_text: Whether text from corpora is shown, where the run kept it.
        naming: How people and records are called.
        unread: Which tables cannot be read, and why.
    """
    presentation, unloaded = _load_answer_presentation(result.audit)
    # The tables of a run that did not show text are masked already; a mask of a mask would tell a wrong length.
    as_it_stands = show_text or result.settings.get("show_text") is False
    # Where a run kept text, a setting may hold it as well; an audit without this choice has none to hide there.
    settings = mask_settings(result.settings, show_text=show_text or result.settings.get("show_text") is not True)
    figures, undrawn = _draw_answer_figures(result, tables, presentation)
    advice = choose_advice(result, presentation.advice)
    return Answer(
        result=result,
        presentation=presentation,
        light=choose_light(result, presentation),
        verdict=render_sentence(result.verdict, naming),
        meaning="" if advice is None else advice.meaning,
        steps=() if advice is None else advice.steps,
        next_step="" if result.next_step in (None, summarise_steps(advice)) else str(result.next_step),
        settings={name.replace("_", " "): _format_setting(value) for name, value in settings.items()},
        rows=tuple(map(_add_next_step, build_summary_rows(result), result.findings)),
        figures=tuple(figures),
        tables=tuple(
            build_result_table(result, name, tables[name], presentation.tables.get(name), as_it_stands, naming)
            for name in result.tables
            if name in tables and name not in presentation.drawn
        ),
        remarks=build_remarks(result, (*unloaded, *unread, *undrawn), naming),
        listings=build_listings(result),
    )


def build_result_table(
    result: Result,
    name: str,
    table: pa.Table,
    view: TableView | None,
    show_text: bool,
    naming: Naming,
) -> Table:
    """A table of an answer as it is shown, without what the result withholds."""
    seen = withhold_columns(result, merge_id_columns(result, table), view)
    path = result.tables[name]
    shown = build_table(name, seen.table, seen.view, path=path, show_text=show_text, naming=naming)
    return replace(shown, withheld=seen.note)


def _add_next_step(row: Row, finding: Finding) -> Row:
    """A finding of an answer in words, and what to do about it."""
    severity = finding.severity and f"Severity: {finding.severity}."
    step = finding.next_step and f"What to do: {finding.next_step}"
    return replace(row, reading=" ".join(filter(None, [row.reading, severity, step])))


def _load_answer_presentation(audit: str) -> tuple[Presentation, list[str]]:
    """How an answer is shown, and what is to be said of a plug-in that is installed and cannot be loaded."""
    try:
        return find_presentation(audit), []
    except PlanError as error:
        if error.code != "plugin_broken":
            raise
        return GENERIC, [error.found]


def _draw_answer_figures(
    result: Result, tables: Mapping[str, pa.Table], presentation: Presentation
) -> tuple[list[Figure], list[str]]:
    """The figures of an answer, or why there are none."""
    if not presentation.figures:
        return [], []
    try:
        draw = load_function(presentation.figures)
    except PlanError as error:
        return [], [error.found]
    return [withhold_figure(result, figure) for figure in draw(result, tables)], []


def _read_answer_tables(folder: RunFolder, result: Result) -> tuple[dict[str, pa.Table], list[str]]:
    """The tables of an answer that can be read, and what is to be said of those that cannot."""
    tables, unread = dict[str, pa.Table](), list[str]()
    for name in result.tables:
        try:
            tables[name] = folder.read_table(result, name)
        except StoreError as error:
            unread.append(error.found)
    for name, (file, reader) in _load_answer_presentation(result.audit)[0].files.items():
        if (folder.path / file).exists():
            try:
                tables[name] = load_function(reader)(folder.path / file)
            except (StoreError, PlanError) as error:
                unread.append(error.found)
    return tables, unread


def _format_setting(value: Any) -> str:
    """A setting in an answer as people write it."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
