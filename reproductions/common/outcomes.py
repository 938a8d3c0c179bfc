"""What a study found: figures beside the paper's, as a table, as JSON, and against what is expected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from recollect.files import read_json, write_json

Number = float | int | str | None
DIGITS = 6
"""Significant digits that are kept of a figure: more would differ from machine to machine."""


@dataclass(frozen=True)
class Figure:
    """One number of the paper and ours."""

    what: str
    paper: Number
    ours: Number


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a study found."""

    title: str
    scale: str
    """How much smaller than in the paper it was done."""
    figures: list[Figure]
    details: dict[str, Any] = field(default_factory=dict)
    """What the figures were made of."""
    origin: str = ""
    """Where the figures come from, if not from the study as it is now."""

    def save(self, file: Path) -> None:
        """Write it down."""
        write_json(file, asdict(self))

    def keep(self, file: Path) -> None:
        """Write the figures down, rounded and without what they were made of: what the repository has of a study."""
        figures = [Figure(each.what, each.paper, rounded(each.ours)) for each in self.figures]
        replace(self, figures=figures, details={}).save(file)

    @classmethod
    def load(cls, file: Path) -> Outcome:
        """What `save` wrote."""
        written = read_json(file)
        return cls(**{**written, "figures": [Figure(**each) for each in written["figures"]]})

    def table(self) -> str:
        """The figures as Markdown: one row a setting where figures are named "setting: column", or one a figure."""
        named = [each.what.rpartition(": ") for each in self.figures]
        settings = dict.fromkeys(setting for setting, _, _ in named)
        columns = dict.fromkeys(column for _, _, column in named)
        wide = "" not in settings and len(columns) <= len(self.figures) / 2
        lines = self._list_settings(list(settings), list(columns)) if wide else self._list_figures()
        return "\n".join([f"### {self.title}", "", self.scale, "", *lines, ""])

    def _list_figures(self) -> Iterator[str]:
        """One row a figure."""
        yield from ("| | paper | ours |", "|---|---|---|")
        for each in self.figures:
            yield f"| {each.what} | {shown(each.paper)} | {shown(each.ours)} |"

    def _list_settings(self, settings: Sequence[str], columns: Sequence[str]) -> Iterator[str]:
        """One row a setting; the paper's figure stands before ours in columns of which the paper has any."""
        found = {each.what: each for each in self.figures}
        printed = {each.what.rpartition(": ")[2] for each in self.figures if each.paper is not None}
        yield f"| | {' | '.join(f'{each} (paper / ours)' if each in printed else each for each in columns)} |"
        yield "|---" * (1 + len(columns)) + "|"
        for setting in settings:
            cells = [found.get(f"{setting}: {column}") for column in columns]
            texts = [
                ""
                if cell is None
                else f"{shown(cell.paper)} / {shown(cell.ours)}"
                if column in printed
                else shown(cell.ours)
                for column, cell in zip(columns, cells, strict=True)
            ]
            yield f"| {setting} | {' | '.join(texts)} |"


def outside(name: str, figures: Iterable[Figure], expected: Path) -> Iterator[str]:
    """Figures that are not where they are expected: `{study: {what: [lowest, highest]}}`.

    "wrong…" is whatever begins so; null in place of a range: the guard is expected to withhold the figure.
    """
    ours = {each.what: each.ours for each in figures}
    for what, limits in read_json(expected).get(name, {}).items():
        begins = what.removesuffix("…")
        found = next(
            (ours[each] for each in ours if each == what or (begins != what and each.startswith(begins))), None
        )
        if limits is None:
            if found is not None:
                yield f"{name}: {what} is {shown(found)}; expected to be withheld"
        elif not isinstance(found, int | float) or not limits[0] <= found <= limits[1]:
            yield f"{name}: {what} is {shown(found)}; expected from {limits[0]} to {limits[1]}"


def rounded(value: Any) -> Any:
    """A value as JSON has them with as many digits of its numbers as are kept.

    >>> rounded({"a": [0.123456789, 3]})
    {'a': [0.123457, 3]}
    """
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def shown(value: Number) -> str:
    """A number as a reader wants it.

    >>> shown(0.000012), shown(12345.6), shown(3.14159), shown(None)
    ('1.2e-05', '12,346', '3.14', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.1e}"
    return f"{value:.2f}" if abs(value) >= 0.01 else f"{value:.1e}"
