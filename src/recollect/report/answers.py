"""What one audit found, with its figures and tables, ready to be shown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from recollect.errors import StoreError
from recollect.report.figures.figure import Figure
from recollect.report.questions import Light, light_of
from recollect.report.tables import Table, table_of
from recollect.report.views import GENERIC, VIEWS, View
from recollect.results.folders import RunFolder
from recollect.results.masking import shown_settings
from recollect.results.result import Result
from recollect.results.summary import Row, summary_rows


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one audit found, ready to be shown."""

    result: Result
    light: Light
    settings: dict[str, str]
    """The settings of the audit in words."""
    rows: tuple[Row, ...]
    """One per finding, in its order."""
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    unreadable: tuple[str, ...]
    """Tables that the run folder ought to hold and does not."""

    @property
    def origin(self) -> dict[str, str]:
        """What the result came from, in words."""
        trace = {} if self.result.provenance is None else self.result.provenance.model_dump(mode="json")
        versions, digests = trace.pop("versions", {}), trace.pop("digests", {})
        flat = trace | versions | {f"digest of {part}": digest for part, digest in digests.items()}
        return {name: _plain(value) for name, value in flat.items() if value is not None}


def answer_of(folder: RunFolder, result: Result, *, show_text: bool) -> Answer:
    """One result of a run folder with its figures and tables."""
    view = VIEWS.get(result.audit, GENERIC)
    held, unreadable = _held(folder, result, view)
    # The tables of a run that did not show text are masked already; a mask of a mask would tell a wrong length.
    as_it_stands = show_text or result.settings.get("show_text") is False
    # Where a run kept text, a setting may hold it as well; an audit without this choice has none to hide there.
    settings = shown_settings(result.settings, show_text=show_text or result.settings.get("show_text") is not True)
    tables = [
        table_of(name, held[name], view.tables.get(name), place=place, show_text=as_it_stands)
        for name, place in result.tables.items()
        if name in held and name not in view.drawn
    ]
    return Answer(
        result=result,
        light=light_of(result),
        settings={name.replace("_", " "): _plain(value) for name, value in settings.items()},
        rows=tuple(summary_rows(result)),
        figures=tuple(view.figures(result, held)),
        tables=tuple(tables),
        unreadable=tuple(unreadable),
    )


def _held(folder: RunFolder, result: Result, view: View) -> tuple[dict[str, pa.Table], list[str]]:
    """The tables that can be read, those of other files among them, and what is to be said of those that cannot."""
    held, unreadable = dict[str, pa.Table](), list[str]()
    for name in result.tables:
        try:
            held[name] = folder.read_table(result, name)
        except StoreError as error:
            unreadable.append(error.found)
    for name, (file, read) in view.files.items():
        if (folder.path / file).exists():
            try:
                held[name] = read(folder.path / file)
            except StoreError as error:
                unreadable.append(error.found)
    return held, unreadable


def _plain(value: Any) -> str:
    """A setting as people write it."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
