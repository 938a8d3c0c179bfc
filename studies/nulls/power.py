"""Power on equal designs: how often members are found and named, by the audits as they are and by those of 0.1.0."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from cells import FEW, METHODS, Cell
from designs import Design
from people import FLEET_USERS, TARGETS, find_data
from trainings import Bench
from worlds import run_world

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "power.json"
PAGE = HERE.parents[1] / "docs" / "methods" / "power.md"
DESIGNS = {
    each.name: each
    for each in (
        Design(name="one-in", title="1 member against 99", audited=1, inside=1.0),
        Design(name="five-in", title="5 members against 99", audited=5, inside=1.0),
        Design(name="quarter-in", title="5 members among 20, against 99", audited=20, inside=0.25),
        Design(name="all-in", title="20 members against 80", audited=20, controls=80, inside=1.0),
        Design(name="forty-in", title="20 members among 40, against 160", audited=40, controls=160, inside=0.5),
    )
}
CELLS = {
    "membership-user-loss": ("one-in", "five-in", "quarter-in"),
    "membership-user-ratio": ("one-in", "five-in", "quarter-in"),
    "membership-record-loss": ("quarter-in", "all-in"),
    "leakage-top-10": ("quarter-in", "forty-in"),
    "provenance": ("one-in", "quarter-in"),
    "removal-set": ("quarter-in", "all-in"),
}
"""Audited people have as many records as controls, 10 each; records are one of each person."""


def list_cells() -> Iterator[Cell]:
    """All cells."""
    for method, designs in CELLS.items():
        for design in designs:
            yield Cell(method=METHODS[method], design=DESIGNS[design], worlds=FEW)


def describe_design(cell: Cell) -> str:
    """The design as the table says it: the controls of removal are the people who trained the fleet, and no others."""
    title = cell.design.title
    return title.replace("against 99", f"against {FLEET_USERS}") if cell.method.models == "removal" else title


def main() -> int:
    """Draw worlds with members in them, count, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", nargs="?", help="the name under which the counts are kept; none to write the page")
    parser.add_argument("--data", type=Path, help="the folder with the public corpora")
    parser.add_argument("--work", type=Path, default=Path(".recollect/nulls"), help="where answers are kept")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=["reddit", "irc", "synthetic"])
    parser.add_argument("--worlds", type=int, default=10, help="of each cell and set")
    given = parser.parse_args()
    kept = json.loads(given.results.read_text(encoding="utf-8")) if given.results.exists() else {}
    if given.version:
        bench = Bench(data=given.data, work=given.work)
        for cell in list_cells():
            kept.setdefault(cell.name, {"title": describe_design(cell)})[given.version] = _count(cell, bench, given)
            given.results.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    if PAGE.parent.is_dir():
        PAGE.write_text(write_page(kept), encoding="utf-8")
    return 0


def _count(cell: Cell, bench: Bench, given: argparse.Namespace) -> dict[str, int]:
    """In how many worlds of a cell members were found, and somebody was named."""
    said = [
        run_world(cell, bench.load(name, number % TARGETS), number)
        for name in given.sets
        if find_data(given.data, name)
        for number in range(given.worlds)
    ]
    counts = {"worlds": len(said), "found": sum(each.outcome == "found" for each in said)}
    counts["named"] = sum(each.named for each in said)
    counts["inconclusive"] = sum(each.outcome in ("inconclusive", "refused") for each in said)
    print(cell.name, counts, flush=True)
    return counts


def write_page(kept: dict[str, Any]) -> str:
    """The page of the docs.

    Args:
        kept: The counts, by cell and version.
    """
    lines = ["| audit | design | worlds | found: 0.1.0 | 0.2.0 | somebody named: 0.1.0 | 0.2.0 | inconclusive: 0.2.0 |"]
    lines.append("|---|---|--:|--:|--:|--:|--:|--:|")
    for name, row in kept.items():
        old, new = row.get("0.1.0"), row.get("0.2.0")
        shares = [_write_share(each, key) for key in ("found", "named") for each in (old, new)]
        worlds = new["worlds"] if new else 0
        cells = [name.split(".")[0], row["title"], str(worlds), *shares, _write_share(new, "inconclusive")]
        lines.append(f"| {' | '.join(cells)} |")
    template = (HERE / "power.template.md").read_text(encoding="utf-8")
    return template.replace("<!-- table -->", "\n".join(lines)).replace("<!-- sums -->", _describe_sums(kept))


def _describe_sums(kept: dict[str, Any]) -> str:
    """All cells together, of which both versions drew worlds."""
    both = [row for row in kept.values() if "0.1.0" in row and "0.2.0" in row]
    sums = {(key, v): sum(row[v][key] for row in both) for key in ("found", "named") for v in ("0.1.0", "0.2.0")}
    worlds, lost = (sum(row["0.2.0"][key] for row in both) for key in ("worlds", "inconclusive"))
    return (
        f"All cells together, {worlds} worlds: 0.1.0 found members in {sums['found', '0.1.0']} and 0.2.0 in "
        f"{sums['found', '0.2.0']}; somebody was named in {sums['named', '0.1.0']} and {sums['named', '0.2.0']}. "
        f"In {lost} of them 0.2.0 is inconclusive, although both sides were drawn alike."
    )


def _write_share(counts: dict[str, int] | None, key: str) -> str:
    """A rate in per cent."""
    return "–" if counts is None else f"{100 * counts[key] / counts['worlds']:.0f} %"


if __name__ == "__main__":
    sys.exit(main())
