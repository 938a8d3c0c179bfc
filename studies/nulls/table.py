"""The page of the docs with the table of false positives, written from the results of all cells."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from cells import MANY, list_cells
from counts import Drawn, add_worlds, digest_rules
from rates import LEVEL, correct_by_holm, list_counts, measure_coverage, summarise
from worlds import Said

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "methods" / "false-positives.md"
SUMMARY, BEFORE = HERE / "results.json", HERE / "before.json"
"""What the audits as they are said in all worlds, and the rates of 0.1.0."""
Kept = Mapping[str, Mapping[str, Drawn]]
"""Worlds that were counted, by cell and set."""


def main() -> int:
    """Sum up the worlds that were drawn, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", help="the folder with the worlds; none to write the page only")
    given = parser.parse_args()
    if given.results is not None:
        kept = {cell: {name: asdict(each) for name, each in drawn.items()} for cell, drawn in add_folder(given.results)}
        SUMMARY.write_text(_write_compactly(kept), encoding="utf-8")
    summary = sum_up(load_kept(SUMMARY))
    PAGE.write_text(write_page(summary, json.loads(BEFORE.read_text(encoding="utf-8"))), encoding="utf-8")
    if earlier := [row["cell"] for row in summary["rates"] if row["rules"] != [digest_rules(row["rules_of"])]]:
        print(f"Drawn by other code than this, wholly or in part: {', '.join(earlier)}")
    failing = [row["cell"] for row in summary["rates"] if not row["holds"]]
    failing += [f"coverage of {row['finding']}" for row in summary["coverage"] if not row["holds"]]
    if not summary["rates"]:
        print("No world was drawn, so nothing is known of any rate.")
        return 1
    print("\n".join(f"FAIL {name}" for name in failing) or "Every rate holds.")
    return int(bool(failing))


def load_kept(file: Path) -> Kept:
    """The worlds that are kept in a file, counted, by cell and set."""
    if not file.exists():
        return {}
    document = json.loads(file.read_text(encoding="utf-8"))
    return {cell: {name: Drawn.from_json(each) for name, each in drawn.items()} for cell, drawn in document.items()}


def add_folder(folder: Path) -> Iterator[tuple[str, dict[str, Drawn]]]:
    """The worlds that are kept and those of a folder, of every cell that has any."""
    kept = load_kept(SUMMARY)
    for cell in list_cells():
        found = dict[str, Drawn]()
        for name in cell.sets:
            file = folder / name / f"{cell.name}.json"
            said = [Said(**each) for each in json.loads(file.read_text(encoding="utf-8"))] if file.exists() else []
            both = add_worlds(kept.get(cell.name, {}).get(name), said)
            if both is not None:
                found[name] = both
        if found:
            yield cell.name, found


def _write_compactly(kept: Mapping[str, Any]) -> str:
    """A JSON document with one line for each set of a cell."""
    cells = [
        f"{json.dumps(cell)}: {{\n"
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in drawn.items())
        + "\n }"
        for cell, drawn in kept.items()
    ]
    return "{\n " + ",\n ".join(cells) + "\n}\n"


def sum_up(kept: Kept) -> dict[str, list[dict[str, Any]]]:
    """The rates of all cells and the coverage of all intervals, corrected for how many there are."""
    rows, intervals = list[dict[str, Any]](), dict[str, dict[str, list[int]]]()
    unfinished = set[str]()
    for cell in [cell for cell in list_cells() if cell.name in kept]:
        drawn = kept[cell.name]
        by_target = list_counts(drawn)
        for target, counts in by_target.items():
            for name, (told, held) in counts.intervals.items():
                key = f"{cell.method.name.split('-')[0]} `{name}`{_describe_inside(cell.design.inside)}"
                if sum(each.worlds for each in by_target.values()) < cell.worlds:
                    unfinished.add(key)
                sums = intervals.setdefault(key, {}).setdefault(target, [0, 0])
                sums[0], sums[1] = sums[0] + told, sums[1] + held
        if cell.design.inside:
            continue
        about = {"audit": cell.method.name, "design": cell.design.title, "exchangeable": cell.design.exchangeable}
        rows.append(
            {
                "cell": cell.name,
                **about,
                "decides": cell.worlds == MANY,
                "wanted": cell.worlds,
                "rules_of": cell.method.audit,
                "rules": sorted({version for each in drawn.values() for version in each.rules}),
                **asdict(summarise(cell, drawn)),
            }
        )
    coverage = [
        {**measure_coverage(name, told), "complete": name not in unfinished} for name, told in sorted(intervals.items())
    ]
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
        .replace("<!-- rules -->", _describe_rules(rates))
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


def _describe_rules(rates: Sequence[Mapping[str, Any]]) -> str:
    """By which versions of each audit the worlds were drawn."""
    versions = Counter((row["rules_of"], version) for row in rates for version in row["rules"])
    return ", ".join(f"{audit} `{version}` ({count} cells)" for (audit, version), count in sorted(versions.items()))


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
    """Whether an interval covers often enough; before all worlds are drawn, only so far."""
    if not row["holds"]:
        return "**no**"
    return "yes" if row["complete"] else "so far"


def _write_share(share: float | None) -> str:
    """A rate in per cent."""
    return "–" if share is None else f"{100 * share:.1f} %"


if __name__ == "__main__":
    sys.exit(main())
