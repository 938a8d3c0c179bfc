"""The README of the study, written from `results.json`.

python page.py FOLDER    sum up what a run kept in FOLDER (.recollect/smollm2/SIZE) as results.json, and write the page
python page.py           write the page only
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS, PAGE, TEMPLATE = HERE / "results.json", HERE / "README.md", HERE / "page.md"
SHOWN: dict[str, tuple[str, ...]] = {
    "exposure": ("any_memorised_p", "highest_exposure_bits", "exposure_bits_controls"),
    "extract": ("best_bits", "planted_among_listed", "place_of_first_planted"),
    "membership": ("auc", "tpr_at_fpr_0.01", "identified"),
    "provenance": ("users_found", "auc", "recall", "false_positive_rate"),
    "removal": ("fraction_still_in", "p_still_there", "p_gone"),
    "leakage": ("leakage_epsilon", "flagged_users", "unique_sequences"),
}
"""The findings of each audit that the page shows, where the result has them."""


def main() -> None:
    """Sum up a run, if one is given, and write the page."""
    if len(sys.argv) > 1:
        RESULTS.write_text(json.dumps(sum_up(Path(sys.argv[1])), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(write_page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")


def sum_up(folder: Path) -> dict[str, Any]:
    """What a run kept: its size, the seconds of every training, and every verdict beside the truth."""
    files = sorted((folder / "results").glob("*.json"), key=lambda file: file.stat().st_mtime)
    seconds = sorted((folder / "models").glob("*/seconds.json"))
    return {
        "size": folder.name,
        "training_cpu_seconds": {file.parent.name: _read(file)["cpu_seconds"] for file in seconds},
        "precision": _read(folder / "precision.json") if (folder / "precision.json").exists() else None,
        "null_exposures": _read(folder / "null_exposures.json") if (folder / "null_exposures.json").exists() else [],
        "planned": _read(folder / "planned.json"),
        "audits": {file.stem: _read(file) for file in files},
    }


def write_page(results: dict[str, Any]) -> str:
    """The page: what was done, by hand; and every number, from the results."""
    audits = results["audits"]
    halves = {"texts": {}, "chats": {}}
    for name, row in audits.items():
        halves["chats" if name.startswith("chat-") else "texts"][name] = row
    filled = TEMPLATE.read_text(encoding="utf-8")
    pieces = {
        "SIZE": results["size"],
        "SCORE": _count_right(audits),
        "MISSING": _list_missing(results),
        "TEXTS": _tabulate(halves["texts"]),
        "CHATS": _tabulate(halves["chats"]),
        "TRAININGS": ", ".join(f"`{name}` {value:.0f}" for name, value in results["training_cpu_seconds"].items()),
        "MEMORY": f"{max((row['peak_gb'] for row in audits.values()), default=0):.1f}",
        "NULLS": _count_false_exposures(results),
        "PRECISION": _describe_precision(results),
        "SECONDS": f"{sum(row['cpu_seconds'] for row in audits.values()):,.0f}",
    }
    for name, text in pieces.items():
        filled = filled.replace(f"{{{{{name}}}}}", text)
    return filled


def _describe_precision(results: dict[str, Any]) -> str:
    """By how much bfloat16 moves scores and findings."""
    apart, audits = results["precision"], results["audits"]
    if apart is None:
        return "Not measured."
    words = (
        f"The target in bfloat16 against float32, {apart['tokens']:,} tokens: log-probabilities differ by "
        f"{apart['median']:.3f} (median), {apart['largest']:.2f} (largest); equal rank: {apart['equal_rank']:.0%} of "
        f"all tokens, {apart['equal_rank_of_top_10']:.0%} of those among the top 10."
    )
    lines = [words, "", "| audit | finding | float32 | bfloat16 |", "|---|---|---|---|"]
    for name in (name for name in audits if name.endswith("-bf16")):
        exact, rough = audits[name.removesuffix("-bf16")], audits[name]
        lines.append(f"| `{name}` | verdict | {exact['outcome']} | {rough['outcome']} |")
        for key in SHOWN[name.split("-")[0]]:
            if key in exact["findings"] and key in rough["findings"]:
                values = _format(exact["findings"][key]), _format(rough["findings"][key])
                lines.append(f"| | {key} | {values[0]} | {values[1]} |")
    return "\n".join(lines)


def _count_false_exposures(results: dict[str, Any]) -> str:
    """In how many draws of secrets that were planted nowhere exposure finds something in the base."""
    rows = results.get("null_exposures", [])
    if not rows:
        return "False positives of exposure over other draws of secrets: not measured."
    found = sum(row["outcome"] == "found" for row in rows)
    return (
        f"`exposure-base` with {len(rows)} other draws of as many secrets, planted nowhere: found in {found} of them. "
        "The random draws with which they are compared are the same in all."
    )


def judge(row: dict[str, Any]) -> str:
    """Whether an outcome is right.

    >>> judge({"outcome": "inconclusive", "truth": "found"})
    'undecided'
    """
    if row["truth"] == "open":
        return "–"
    if row["outcome"] == row["truth"]:
        return "right"
    return "undecided" if row["outcome"] == "inconclusive" else "**wrong**"


def _count_right(audits: dict[str, Any]) -> str:
    """How many verdicts are right, in words."""
    judged = [judge(row) for row in audits.values()]
    known = [each for each in judged if each != "–"]
    return (
        f"Of {len(known)} audits whose truth is known, {known.count('right')} are right, {known.count('undecided')} "
        f"undecided and {known.count('**wrong**')} wrong; of {len(judged) - len(known)} nothing was known beforehand."
    )


def _list_missing(results: dict[str, Any]) -> str:
    """Which audits have not been run."""
    missing = [f"`{name}`" for name in results["planned"] if name not in results["audits"]]
    return f"Not run in this size yet: {', '.join(missing)}." if missing else "Every audit was run."


def _tabulate(audits: dict[str, Any]) -> str:
    """One line for every audit."""
    if not audits:
        return "None was run yet."
    words = {"found": "found", "not_found": "no sign", "inconclusive": "inconclusive", "open": "not known"}
    lines = ["| audit | verdict | truth | | findings | CPU s |", "|---|---|---|---|---|---|"]
    for name, row in audits.items():
        kind = name.removeprefix("chat-").split("-")[0]
        shown = [f"{key} {_format(row['findings'][key])}" for key in SHOWN[kind] if key in row["findings"]]
        cells = [f"`{name}`", words[row["outcome"]], words[row["truth"]], judge(row), ", ".join(shown)]
        lines.append(f"| {' | '.join(cells)} | {row['cpu_seconds']:,.0f} |")
    return "\n".join(lines)


def _format(value: float | None) -> str:
    """A number with three digits that count."""
    return "–" if value is None else f"{value:.3g}"


def _read(file: Path) -> Any:
    """What a JSON file holds."""
    return json.loads(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
