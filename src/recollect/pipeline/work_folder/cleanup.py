"""Cleaning a work folder: what no run needs any more, with sizes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from recollect.files import is_leftover, is_locked, refuse_use
from recollect.models.answer_store.batch_journal import JOURNAL_SUFFIX
from recollect.models.answer_store.manifest import MANIFEST
from recollect.models.loading.known_models import KNOWN_MODELS, find_answers
from recollect.pipeline.work_folder.run_notes import iter_run_notes
from recollect.pipeline.work_folder.work_entries import (
    DELETED,
    WorkItem,
    build_work_item,
    delete_entry,
    iter_entries,
    refuse_other_folder,
)


@dataclass(frozen=True, kw_only=True)
class Cleanup:
    """What no run needs any more."""

    work: Path
    items: tuple[WorkItem, ...]
    kept: int
    """Stores, models and workspaces that some run needs."""
    deleted: bool
    """Whether the items, but for those in use, have been deleted."""

    @property
    def size(self) -> int:
        """The bytes of all items that are not in use."""
        return sum(item.size for item in self.items if not item.in_use)


def clean_work(work: Path, *, delete_items: bool = False) -> Cleanup:
    """Find what no run needs any more: what no run folder that still exists rests on, and what killed runs left.

    Args:
        work: The work folder.
        delete_items: Delete it; otherwise nothing is changed.

    Raises:
        PlanError: The folder is no work folder.
        StoreError: A note about a run is damaged; or a run uses the folder, and something was to be deleted.
    """
    refuse_other_folder(work)
    with refuse_use(work) if delete_items else nullcontext():
        items, kept = _list_items_to_clean(work)
        if delete_items:
            for item in items:
                if not item.in_use:
                    delete_entry(item.path)
    return Cleanup(work=work, items=tuple(items), kept=kept, deleted=delete_items)


def _list_items_to_clean(work: Path) -> tuple[list[WorkItem], int]:
    """The items to clean, and how many stores, models and workspaces some run still needs."""
    needed = set[str]()
    items = list[WorkItem]()
    for note, run, entries in iter_run_notes(work):
        if run.is_dir():
            needed |= entries
        else:
            items.append(build_work_item(note, f"its run folder '{run}' is gone"))
    kept = 0
    for entry in iter_entries(work):
        if entry.relative_to(work).as_posix() in needed:
            kept += 1
            items += [build_work_item(path, reason) for path, reason in _iter_unneeded_parts(entry)]
        else:
            items.append(build_work_item(entry, "no run folder that still exists rests on it"))
    doomed = {item.path for item in items}
    items += [
        build_work_item(path, "the answers that it leads to are gone, or go")
        for path in sorted((work / KNOWN_MODELS).glob("[!.]*.json"))
        if (store := find_answers(path, work)) is None or store in doomed
    ]
    items += [
        build_work_item(path, reason)
        for path, reason in _iter_unneeded_remains(work)
        if not any(parent in doomed for parent in path.parents)
    ]
    return items, kept


def _iter_unneeded_parts(entry: Path) -> Iterator[tuple[Path, str]]:
    """What a store or model that some run needs holds besides, and why it may be cleaned."""
    if (entry / "card.json").is_file() and (entry / "working").is_dir():
        yield entry / "working", "left over from a training that ended"
    if (entry / MANIFEST).is_file() and not is_locked(entry):
        for path in sorted(entry.glob(f"*{JOURNAL_SUFFIX}")):
            yield path, "unfinished answers of a run that was killed"


def _iter_unneeded_remains(work: Path) -> Iterator[tuple[Path, str]]:
    """What killed writers left, and tracebacks, which may be cleaned."""
    for path in sorted(work.rglob(".*")):
        if path.name.startswith(DELETED):
            yield path, "its deletion was interrupted"
        elif is_leftover(path):
            yield path, "a run that was killed left it half-written"
    for path in sorted(work.glob("traceback-*.txt")):
        yield path, "the traceback of an error"
