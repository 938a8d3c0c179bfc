"""What a result withholds is neither drawn nor tabulated: figures and columns go with the findings that they reveal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from recollect.report.figures.figure import Figure
from recollect.results.presentation import TableView
from recollect.results.result import Result

_DECISIONS: Final = ("identified", "training_p", "any_member_p", "users_found", "lowest_p_corrected", "flagged_users")
_TRUTH: Final = ("auc", "membership_p", "accuracy", "recall", "precision", "false_positive_rate")
REVEALING_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "score": ("auc", "membership_p", "training_p", "users_found"),
    "p_value": _DECISIONS,
    "p_corrected": _DECISIONS,
    "identified": _DECISIONS,
    "flagged": _DECISIONS,
    "threshold": _DECISIONS,
    "svm_member": _DECISIONS,
    "trained": _TRUTH,
    "member": _TRUTH,
    "likely_memorised": ("susceptibility_precision", "susceptibility_recall"),
    **{f"{half}_precision": ("susceptibility_precision",) for half in ("train", "test")},
    **{f"{half}_recall": ("susceptibility_recall",) for half in ("train", "test")},
}
"""Columns from which findings can be read, in the tables of every audit; a `TableView` may declare more."""


@dataclass(frozen=True, kw_only=True)
class VisibleTable:
    """What may be shown of a table."""

    table: pa.Table
    view: TableView | None
    note: str
    """Which columns are withheld, and why; empty if none is."""


def find_withheld_reasons(result: Result, revealed: Iterable[str]) -> str:
    """Why findings that something reveals are withheld, each reason once; empty if all of them may be shown."""
    names = set(revealed)
    return " ".join(dict.fromkeys(each.reason for each in result.withheld if each.finding in names))


def withhold_figure(result: Result, figure: Figure) -> Figure:
    """The figure; where a finding that it reveals is withheld, its title and the reason alone."""
    reasons = find_withheld_reasons(result, figure.reveals)
    if not reasons:
        return figure
    return replace(figure, panels=(), legend=(), reading="", description="", withheld=reasons)


def withhold_columns(result: Result, table: pa.Table, view: TableView | None) -> VisibleTable:
    """A table without the columns that reveal what the result withholds, nor in their order."""
    declared = {**REVEALING_COLUMNS, **({} if view is None else view.reveals)}
    reasons = {
        name: found
        for name in table.column_names
        if (found := find_withheld_reasons(result, (name, *declared.get(name, ()))))
    }
    if not reasons:
        return VisibleTable(table=table, view=view, note="")
    if view is not None and view.first in reasons:
        # what a caption says after its comma is the order, which is withheld as well
        view = replace(view, first=None, caption=view.caption.partition(",")[0])
    headings = {} if view is None else view.columns
    names = ", ".join(headings.get(name, name.replace("_", " ")) for name in reasons)
    note = f"Withheld: {names}. {' '.join(dict.fromkeys(reasons.values()))}"
    return VisibleTable(table=table.drop_columns(list(reasons)), view=view, note=note)
