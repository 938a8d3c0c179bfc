"""The page of the docs with the table of false positives, written from the results of all cells."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from cells import MANY, list_cells
from rates import LEVEL, correct_by_holm, measure_coverage, summarise
from worlds import Said

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "methods" / "false-positives.md"
SUMMARY, BEFORE = HERE / "results.json", HERE / "before.json"
"""The rates of the audits as they are, and as they were in 0.1.0."""


def main() -> int:
    """Sum up the worlds that were drawn, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", help="the folder with the worlds; none to write the page only")
    parser.add_argument("--before", action="store_true", help="these are worlds of an earlier version, to compare with")
    given = parser.parse_args()
    if given.results is not None:
        file = BEFORE if given.before else SUMMARY
        file.write_text(json.dumps(sum_up(given.results), indent=1) + "\n", encoding="utf-8")
    if given.before:
        return 0
    summary = json.loads(SUMMARY.read_text(encoding="utf-8"))
    PAGE.write_text(write_page(summary, json.loads(BEFORE.read_text(encoding="utf-8"))), encoding="utf-8")
    failing = [row["cell"] for row in summary["rates"] if not row["holds"]]
    failing += [f"coverage of {row['finding']}" for row in summary["coverage"] if not row["holds"]]
    print("\n".join(f"FAIL {name}" for name in failing) or "Every rate holds.")
    return int(bool(failing))


def sum_up(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rates of all cells and the coverage of all intervals, corrected for how many there are."""
    rows, intervals = list[dict[str, Any]](), dict[str, list[tuple[str, bool]]]()
    for cell in list_cells():
        files = [folder / name / f"{cell.name}.json" for name in cell.sets]
        said = [
            Said(**each) for file in files if file.exists() for each in json.loads(file.read_text(encoding="utf-8"))
        ]
        if not said:
            continue
        for each in said:
            for name, held in (each.intervals or {}).items():
                key = f"{cell.method.name.split('-')[0]} `{name}`{_describe_inside(cell.design.inside)}"
                intervals.setdefault(key, []).append((f"{each.set} {each.target}", held))
        if cell.design.inside:
            continue
        about = {"audit": cell.method.name, "design": cell.design.title, "exchangeable": cell.design.exchangeable}
        rows.append(
            {
                "cell": cell.name,
                **about,
                "decides": cell.worlds == MANY,
                "wanted": cell.worlds,
                **asdict(summarise(cell, said)),
            }
        )
    coverage = [measure_coverage(name, held) for name, held in sorted(intervals.items())]
    _decide(rows, ("p", "guarded_p"))
    _decide(coverage, ("p",))
    return {"rates": rows, "coverage": coverage}


def _describe_inside(share: float) -> str:
    """How many of the audited are in the training set, if any."""
    return f", {share:.0%} of the audited in" if share else ""


def _decide(rows: list[dict[str, Any]], names: Sequence[str]) -> None:
    """Add corrected p-values to rows, and whether they hold."""
    for name in names:
        for row, corrected in zip(rows, correct_by_holm([row[name] for row in rows]), strict=True):
            row[f"{name}_corrected"] = corrected
    for row in rows:
        row["holds"] = all(row[f"{name}_corrected"] >= LEVEL for name in names)


Summary = Mapping[str, Sequence[Mapping[str, Any]]]


def write_page(summary: Summary, before: Summary) -> str:
    """The page.

    Args:
        summary: The rates and the coverage of the audits as they are.
        before: As they were.
    """
    earlier = {row["cell"]: row for row in before["rates"]}
    rates = sorted(summary["rates"], key=lambda row: not row["decides"])
    text = (HERE / "page.template.md").read_text(encoding="utf-8")
    worlds = sum(row["worlds"] for row in rates)
    contradictory = round(sum(row["worlds"] * row["contradictory"] for row in rates))
    return (
        text.replace("<!-- worlds -->", f"{worlds:,}")
        .replace("<!-- cells -->", str(len(rates)))
        .replace("<!-- unfinished -->", _describe_progress(rates))
        .replace("<!-- contradictory -->", f"{contradictory:,}")
        .replace("<!-- decides -->", _write_rates([row for row in rates if row["decides"]], earlier))
        .replace("<!-- others -->", _write_rates([row for row in rates if not row["decides"]], earlier))
        .replace("<!-- coverage -->", _write_coverage(summary["coverage"]))
    )


def _describe_progress(rates: Sequence[Mapping[str, Any]]) -> str:
    """What is missing from a full run; empty if nothing is."""
    wanted = {cell.name: cell.worlds for cell in list_cells() if not cell.design.inside}
    drawn = {row["cell"]: row["worlds"] for row in rates}
    if all(drawn.get(name, 0) >= worlds for name, worlds in wanted.items()):
        return ""
    return (
        f"**This is a part of a full run**, which has {len(wanted)} cells, 800 worlds in cells that decide and 200 in "
        "others: with few worlds, only large errors can be seen."
    )


def _write_rates(rows: Sequence[Mapping[str, Any]], earlier: Mapping[str, Mapping[str, Any]]) -> str:
    """One row per cell."""
    columns = ("audit", "design", "worlds", "found", "somebody named", "p ≤ 0.05", "inconclusive", "of it guard")
    lines = [f"| {' | '.join((*columns, 'by target', 'holds', '0.1.0'))} |", f"|---|---|{'--:|' * 7}---|--:|"]
    for row in rows:
        cells = [
            row["audit"],
            row["design"],
            str(row["worlds"]),
            *(_write_share(row[name]) for name in ("found", "named", "low_p", "inconclusive", "guarded")),
            f"{100 * min(row['by_target'].values()):.0f}–{100 * max(row['by_target'].values()):.0f} %",
            _write_holding(row),
            _write_share(_find_worst(earlier.get(row["cell"]))),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _write_holding(row: Mapping[str, Any]) -> str:
    """Whether the rates of a cell hold."""
    if not row["holds"]:
        return "**no**"
    return "yes" if row["worlds"] >= row["wanted"] else "so far"


def _find_worst(row: Mapping[str, Any] | None) -> float | None:
    """The largest of the three rates."""
    return None if row is None else max(row["found"], row["named"], row["low_p"] or 0.0)


def _write_coverage(rows: Sequence[Mapping[str, Any]]) -> str:
    """One row per interval."""
    lines = ["| interval | told in | holds the true value | often enough |\n|---|--:|--:|---|"]
    for row in rows:
        held = f"{row['finding']} | {row['intervals']} worlds | {100 * row['coverage']:.1f} %"
        lines.append(f"| {held} | {_judge_coverage(row)} |")
    return "\n".join(lines)


def _judge_coverage(row: Mapping[str, Any]) -> str:
    """Whether an interval covers often enough; few worlds cannot show it."""
    if not row["holds"]:
        return "**no**"
    return "yes" if row["intervals"] >= MANY else "so far"


def _write_share(share: float | None) -> str:
    """A rate in per cent."""
    return "–" if share is None else f"{100 * share:.1f} %"


if __name__ == "__main__":
    sys.exit(main())
