"""Trained models and begun trainings on disk: what they are, and whether they are whole. Loads no torch."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import StoreError
from recollect.files import FileFault, find_faults, read_checked_json
from recollect.files.checksums import iter_files
from recollect.models.loading.model_cards import CARD, README, TRAINING, read_listed_files


def is_model_folder(folder: Path) -> bool:
    """Whether a folder holds a trained model or a begun training."""
    return (folder / TRAINING).is_file() or (folder / CARD).is_file()


def find_model_faults(folder: Path) -> tuple[int, list[Path], list[FileFault]]:
    """Of a trained model: how many files fit their checksums, which carry none, and what is wrong with the others."""
    if not is_model_folder(folder):
        detail = f"It has neither {TRAINING} nor {CARD}: it is no training's folder."
        return 0, [], [FileFault(path=folder, problem="extra", detail=detail)]
    try:
        listed = read_listed_files(folder)
    except StoreError as error:
        return 0, [], [FileFault(path=folder / CARD, problem="damaged", detail=error.found)]
    if not listed:
        return _find_unfinished_faults(folder)
    present = {path.name for path in folder.iterdir() if path.is_file()}
    unchecked = [folder / README] if README in present else []
    inner = [find_model_faults(path) for path in sorted(folder.iterdir()) if is_model_folder(path)]
    faults = [fault for fault in find_faults(folder, listed, ignore=[CARD, README]) if fault.path.parent == folder]
    whole = 1 + len(listed) - sum(fault.problem != "extra" for fault in faults)
    return (
        whole + sum(each[0] for each in inner),
        [*unchecked, *(path for each in inner for path in each[1])],
        [*faults, *(fault for each in inner for fault in each[2])],
    )


def _find_unfinished_faults(folder: Path) -> tuple[int, list[Path], list[FileFault]]:
    """The same of a training that was begun, and of a model that lists no files because an older version made it."""
    whole, unchecked, faults = 0, list[Path](), list[FileFault]()
    for relative, path in iter_files(folder):
        try:
            if relative == TRAINING:
                read_checked_json(path, do="", code="training_damaged")
            elif relative.startswith("working/") and path.suffix == ".safetensors":
                import torch  # only checkpoints need it

                from recollect.recipes.training.checkpoints import read_checkpoint

                read_checkpoint(path, torch.device("cpu"))
            else:
                unchecked.append(path)
                continue
        except StoreError as error:
            faults.append(FileFault(path=path, problem="damaged", detail=error.found))
        else:
            whole += 1
    return whole, unchecked, faults
