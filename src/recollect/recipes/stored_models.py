"""Trained models and begun trainings on disk: what they are, and whether they are whole. Loads no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from recollect.files import Fault
from recollect.files.checksums import iter_files

TRAINING: Final = "training.json"
"""What a training was begun with."""
CARD: Final = "card.json"
"""Written last: whoever finds it finds a finished model."""


def is_model_folder(folder: Path) -> bool:
    """Whether a folder holds a trained model or a begun training."""
    return (folder / TRAINING).is_file() or (folder / CARD).is_file()


def find_model_faults(folder: Path) -> tuple[int, list[Path], list[Fault]]:
    """How many files fit their checksums, which carry none, and what is wrong with the others."""
    if not is_model_folder(folder):
        detail = f"It has neither {TRAINING} nor {CARD}: it is no training's folder."
        return 0, [], [Fault(path=folder, problem="extra", detail=detail)]
    return 0, [path for _, path in iter_files(folder)], []
