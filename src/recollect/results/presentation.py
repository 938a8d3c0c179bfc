"""How an audit is shown: figures, tables, annex. Declared on the audit's class, read by reports and terminals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recollect.results.advice import Advice
from recollect.results.result import Outcome


@dataclass(frozen=True, kw_only=True)
class TableView:
    """How a table is shown."""

    caption: str
    columns: Mapping[str, str] = field(default_factory=dict)
    """The columns to show, in order, with their headings; all, if none is named."""
    terminal: tuple[str, ...] = ()
    """The few columns that a terminal shows; the first four, if none is named."""
    terminal_rows: int = 3
    """How many rows a terminal shows at most: fewer where the verdict is long; report and run folder have more."""
    first: str | None = None
    """The column whose highest values come first; the order of the table, if None. A caption says so after a
    comma."""
    reveals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Findings that can be read from a column, by column: where a result withholds one of them, the column is not
    shown. `report.withholding.REVEALING_COLUMNS` holds for columns that are not named here."""


@dataclass(frozen=True, kw_only=True)
class Presentation:
    """How an audit is shown; the default shows all columns of all tables and no figures."""

    figures: str = ""
    """Where the function is that draws its figures, "package.module:function"; imported when a report is made.
    It is called with the result and those of its tables that can be read, by name, and gives a list of figures."""
    tables: Mapping[str, TableView] = field(default_factory=dict)
    files: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """More tables for the figures, by name: from which file of the run folder, if it is there, and the function that
    reads it, "package.module:function"."""
    drawn: frozenset[str] = frozenset()
    """Tables that figures show better than rows do."""
    key_findings: frozenset[str] = frozenset()
    """Findings that a terminal shows before others; the first of the result, if none is named."""
    terminal_findings: int = 5
    """How many findings a terminal shows at most; fewer leave more room for rows of the listed table."""
    listed: str = ""
    """The table whose first rows a terminal lists; none if empty."""
    annex: tuple[str, ...] = ()
    """Which questions of the annex its findings are evidence for; see `recollect.report.annex`."""
    supports: str = ""
    """The audit whose question it helps to answer; empty if it answers one of its own."""
    outcome_words: Mapping[Outcome, str] = field(default_factory=dict)
    """Its own words for an outcome, where “found” would be no answer to its question."""
    advice: Mapping[Outcome, Advice] = field(default_factory=dict)
    """What each outcome means, how grave it is, and what to do about it; `advice.DEFAULT_ADVICE` for an outcome that is
    not named here."""


GENERIC = Presentation()
