"""The table of errors, power and coverage of the removal audit: trains once, then draws worlds from stored scores."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from scores import TEXTS, score_images, score_texts
from worlds import Training

TRAININGS = {"mnist": (12, 13, 14, 15, 16), "xray": (7, 8, 9, 10, 11), "texts": (0, 1, 2, 3, 4)}
FRESH = {"mnist": (21, 22), "xray": (12,), "texts": (10, 11, 12)}
"""Trainings that were made after the rule was settled."""
RULE = "0.2.0"
"""The rule by which worlds are decided, noted beside their counts: another name after every change of it."""
KEY = ("part", "kind", "size", "controls", "in", "source")
QUALITIES = (100, 70, 50)
SIZES = (10, 20, 50, 200, 500)
FAR_SIZE = 200
DESIGNS = ((100, 400), (100, 100), (200, 2000), (20, 400), (5, 400))
"""Of texts: audited records and controls."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Worlds of one kind."""

    part: str
    kind: str
    """The quality of the calibration set, or how strongly the language model memorises."""
    training: int
    size: int
    controls: int = 0
    share: float = 0.0
    source: str = "fresh"

    @property
    def name(self) -> str:
        """The name under which its worlds are kept."""
        return "-".join(str(value) for value in asdict(self).values())


def list_cells(part: str, trainings: tuple[int, ...]) -> Iterator[Cell]:
    """The cells of a part."""
    for training in trainings:
        for kind in TEXTS if part == "texts" else map(str, QUALITIES):
            for size, controls in DESIGNS if part == "texts" else ((size, 0) for size in SIZES):
                for share in (0.0, 0.5, 1.0):
                    where = {"part": part, "kind": kind, "training": training, "size": size, "controls": controls}
                    yield Cell(**where, share=share)
                if part != "texts" and size == FAR_SIZE:
                    yield Cell(**where, source="far")


def main() -> None:
    """Run all cells, go on where a killed run stopped, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path(__file__).parent / "runs")
    parser.add_argument("--worlds", type=int, default=40, help="of each cell and training")
    parser.add_argument("--parts", nargs="*", default=list(TRAININGS), choices=list(TRAININGS))
    parser.add_argument("--trainings", type=int, nargs="*", help="only these")
    parser.add_argument("--qualities", nargs="*", help="only these calibration sets, or strengths of texts")
    parser.add_argument("--fresh", action="store_true", help="trainings made after the rule was settled")
    parser.add_argument("--ready", action="store_true", help="only trainings whose scores are stored")
    given = parser.parse_args()
    for part in given.parts:
        for cell in list_cells(part, (FRESH if given.fresh else TRAININGS).get(part, ())):
            if cell.training not in (given.trainings or [cell.training]):
                continue
            if cell.kind not in (given.qualities or [cell.kind]):
                continue
            stored = given.work / "scores" / f"{part}-{cell.training}-{cell.kind}.npz"
            if not given.ready or stored.exists():
                run_cell(cell, given)
    summarise(given.work, Path(__file__).with_name("results.json"))


def run_cell(cell: Cell, given: argparse.Namespace) -> None:
    """The worlds of a cell that are not yet kept."""
    file = given.work / "worlds" / f"{cell.name}.json"
    kept = json.loads(file.read_text()) if file.exists() else []
    if len(kept) >= given.worlds:
        return
    training = load(cell, given.data, given.work)
    for world in range(len(kept), given.worlds):
        rng = np.random.default_rng([cell.training, cell.size, round(100 * cell.share), len(cell.source), world])
        drawn = {"size": cell.size, "share": cell.share, "source": cell.source, "controls": cell.controls}
        kept.append(training.run(rng, **drawn))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept))


_loaded: dict[tuple[Any, ...], Training] = {}


def load(cell: Cell, data: Path, work: Path) -> Training:
    """The stored scores of a cell; only the last ones stay in memory."""
    key = cell.part, cell.training, cell.kind
    if key not in _loaded:
        _loaded.clear()
        texts = cell.part == "texts"
        stored = (
            score_texts(data, work, cell.kind, cell.training)
            if texts
            else score_images(data, work, cell.part, cell.training, int(cell.kind))
        )
        _loaded[key] = Training(stored=stored, images=not texts)
    return _loaded[key]


def summarise(work: Path, results: Path) -> None:
    """Rates over all trainings, by part, kind and size, printed; they replace what was kept of the same cells."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for file in sorted((work / "worlds").glob("*.json")):
        part, kind, training, size, controls, share, source = file.stem.split("-")
        fresh = int(training) in FRESH.get(part, ())
        key = part + (", fresh trainings" if fresh else ""), kind, int(size), int(controls), float(share), source
        groups.setdefault(key, []).extend({**row, "training": training} for row in json.loads(file.read_text()))
    kept = json.loads(results.read_text(encoding="utf-8")) if results.exists() else []
    rows = {tuple(row[name] for name in KEY): row for row in kept}
    for key, worlds in groups.items():
        covered = [world["covered"] for world in worlds if world["covered"] is not None]
        shares = [world["share"] for world in worlds if world["share"] is not None]
        decided = {
            name: sum(world["decision"] == name for world in worlds)
            for name in ("still there", "gone", "over-unlearned", "inconclusive")
        }
        counts = {"worlds": len(worlds), "trainings": len({world["training"] for world in worlds}), **decided}
        mean = round(float(np.mean(shares)), 3) if shares else None
        told = {"covered": sum(covered), "intervals": len(covered), "mean_share": mean}
        rows[key] = {**dict(zip(KEY, key, strict=True)), "rule": RULE, **counts, **told}
    ordered = [rows[key] for key in sorted(rows)]
    results.write_text("[\n" + ",\n".join(json.dumps(row) for row in ordered) + "\n]\n", encoding="utf-8")
    for key in sorted(groups):
        print(*rows[key].values())


if __name__ == "__main__":
    main()
