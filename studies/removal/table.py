"""The table of errors, power and coverage in the docs of removal, written from `results.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "methods" / "removal.md"
BEGIN, END = "<!-- studies/removal/table.py -->", "<!-- end of the table -->"
_COLUMNS = (
    "sets of",
    "calibration set",
    "rule",
    "trainings",
    "all in, found: 5 to 20 records",
    "50 to 100",
    "200 to 500",
    "never in, called still there",
    "half or more in, called gone",
    "never in, called gone: up to 100 records",
    "200 to 500",
    "interval of the share holds 0",
    "½",
    "1",
)
Rows = Sequence[Mapping[str, Any]]


def main() -> None:
    """Write the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(insert_table(text, json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")


def insert_table(text: str, rows: Rows) -> str:
    """The text of the page with the table of these rows.

    Args:
        text: The page, with the two marks between which the table stands.
        rows: The counts of every cell.
    """
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{write_table(rows)}\n\n{END}{after}"


def write_table(rows: Rows) -> str:
    """One line for every kind of calibration set.

    Args:
        rows: The counts of every cell; sets that nothing in the calibration set resembles are left out.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["source"] == "fresh":
            groups.setdefault((row["part"], row["kind"]), []).append(row)
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|---|---|---|{'--:|' * (len(_COLUMNS) - 3)}"]
    lines += [f"| {' | '.join(_write_line(*key, own))} |" for key, own in groups.items()]
    return "\n".join(lines)


def _write_line(part: str, kind: str, rows: Rows) -> list[str]:
    """The cells of one line."""
    sizes = ((5, 20), (50, 100), (200, 500))
    found = [
        _count([r for r in rows if r["in"] == 1 and low <= r["size"] <= high], "still there") for low, high in sizes
    ]
    out = [row for row in rows if row["in"] == 0]
    gone = [_count([r for r in out if low <= r["size"] <= high], "gone") for low, high in ((5, 100), (200, 500))]
    return [
        part,
        kind,
        ", ".join(sorted({row["rule"] for row in rows})),
        str(max(row["trainings"] for row in rows)),
        *found,
        _count(out, "still there"),
        _count([row for row in rows if row["in"] > 0], "gone"),
        *gone,
        *(_count([row for row in rows if row["in"] == share], "covered", "intervals") for share in (0, 0.5, 1)),
    ]


def _count(rows: Rows, what: str, of: str = "worlds") -> str:
    """How many of how many; a dash where there is none."""
    total = sum(row[of] for row in rows)
    return f"{sum(row[what] for row in rows):,} of {total:,}" if total else "–"


if __name__ == "__main__":
    main()
