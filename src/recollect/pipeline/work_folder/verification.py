"""Verification: every checksum of a run folder or a work folder, and what is damaged, missing or extra in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from recollect.errors import PlanError, StoreError
from recollect.files import FileFault, Journal, compute_sha256, find_faults, is_leftover, read_checked_json
from recollect.files.checksums import iter_files
from recollect.models.answer_store.manifest import MANIFEST, Manifest
from recollect.models.answer_store.shards import SUFFIX, read_shard
from recollect.models.loading.known_models import KNOWN_MODELS
from recollect.pipeline.work_folder.run_notes import RUNS
from recollect.pipeline.work_folder.work_entries import ENDPOINTS, ENTRY_PARTS, WORK_PARTS
from recollect.recipes.training.trained_models import find_model_faults, is_model_folder
from recollect.results.run_manifest import RUN_MANIFEST, is_written_by_runs, read_run_manifest

FolderKind = Literal["run folder", "work folder", "answer store", "model folder"]
_TRACEBACK: Final = "traceback-"
JOURNAL: Final = ".journal"


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What the checksums of a folder say."""

    folder: Path
    kind: FolderKind
    checked: int
    """Files that fit their checksums."""
    unchecked: tuple[Path, ...] = ()
    """Files that carry no checksum: of an older version, tracebacks, and what others keep in a run folder."""
    faults: tuple[FileFault, ...] = ()
    manifest_sha256: str | None = None
    """Of a run folder: the SHA-256 of its `manifest.json`; noted elsewhere, it shows that this is the same run."""

    @property
    def is_whole(self) -> bool:
        """Whether all is there, nothing is changed, and nothing was added."""
        return not self.faults


def verify_folder(folder: Path) -> Verification:
    """Check every file of a run folder, a work folder, an answer store or a trained model against its checksum.

    Raises:
        PlanError: The folder is none of these.
    """
    kind = _find_folder_kind(folder)
    checks = _FolderVerifier()
    if kind == "run folder":
        checks.check_run(folder)
    elif kind == "work folder":
        checks.check_work(folder)
    elif kind == "answer store":
        checks.check_store(folder)
    else:
        checks.check_model(folder)
    manifest = folder / RUN_MANIFEST
    return Verification(
        folder=folder,
        kind=kind,
        checked=checks.checked,
        unchecked=tuple(checks.unchecked),
        faults=tuple(checks.faults),
        manifest_sha256=compute_sha256(manifest) if kind == "run folder" and manifest.is_file() else None,
    )


def _find_folder_kind(folder: Path) -> FolderKind:
    """What a folder is that is verified."""
    if (folder / "results").is_dir():
        return "run folder"
    if any((folder / part).is_dir() for part in WORK_PARTS):
        return "work folder"
    if is_model_folder(folder):
        return "model folder"
    if (folder / MANIFEST).is_file():
        return "answer store"
    raise PlanError(
        f"'{folder}' is neither a run folder nor a work folder.",
        do="Give the folder that --out or --work named.",
        code="nothing_to_verify",
    )


@dataclass
class _FolderVerifier:
    """What has been found so far."""

    checked: int = 0
    unchecked: list[Path] = field(default_factory=list)
    faults: list[FileFault] = field(default_factory=list)

    def check_run(self, folder: Path) -> None:
        """Check a run folder against its manifest."""
        try:
            files = read_run_manifest(folder)
        except StoreError as error:
            self.faults.append(FileFault(path=folder / RUN_MANIFEST, problem="damaged", detail=error.found))
            return
        if files is None:
            detail = f"It has no {RUN_MANIFEST}: the run was not finished, or was made before 0.2.0."
            self.faults.append(FileFault(path=folder, problem="unfinished", detail=detail))
            return
        strangers = {relative: path for relative, path in iter_files(folder) if not is_written_by_runs(relative)}
        found = find_faults(folder, files, ignore=strangers)
        self.faults += found
        self.unchecked += [path for relative, path in strangers.items() if relative not in {RUN_MANIFEST, *files}]
        self.checked += 1 + len(files) - sum(each.problem != "extra" for each in found)
        self._find_leftovers(folder)

    def check_work(self, folder: Path) -> None:
        """Check all parts of a work folder."""
        for store in _list_verified_folders(folder / "answers"):
            self.check_store(store)
        for model in _list_verified_folders(folder / "models"):
            self.check_model(model)
        for workspace in _list_verified_folders(folder / "audits"):
            self._check_workspace(workspace)
        for part in ("fleets", RUNS, KNOWN_MODELS):
            for note in _list_verified_files(folder / part):
                self._check_file(note, _verify_note)
        self._check_workspace(folder / ENDPOINTS)
        self._find_leftovers(folder)
        self._note_strangers(path for relative, path in iter_files(folder) if relative.split("/")[0] not in WORK_PARTS)
        for part in ENTRY_PARTS:
            self._note_strangers(_list_verified_files(folder / part))

    def check_store(self, folder: Path) -> None:
        """Check the manifest and every shard of an answer store."""
        try:
            address = Manifest.read(folder).address
        except StoreError as error:
            gone = error.code == "no_answer_store"
            self.faults.append(
                FileFault(path=folder / MANIFEST, problem="missing" if gone else "damaged", detail=error.found)
            )
            return
        self.checked += 1
        for path in _list_verified_files(folder):
            if path.suffix == SUFFIX:
                self._check_file(path, lambda shard: read_shard(shard, address))
            elif path.suffix == JOURNAL:
                self._check_file(path, Journal.verify)
            elif path.name != MANIFEST:
                self._note_strangers([path])

    def check_model(self, folder: Path) -> None:
        """Check a trained model, or a training that was begun."""
        whole, unchecked, faults = find_model_faults(folder)
        self.checked += whole
        self.unchecked += unchecked
        self.faults += faults

    def _check_workspace(self, folder: Path) -> None:
        """Check what an audit keeps to resume."""
        for _, path in iter_files(folder):
            if path.suffix == JOURNAL:
                self._check_file(path, Journal.verify)
            elif path.suffix == ".json":
                self._check_file(path, _verify_note)
            else:
                self._note_strangers([path])

    def _check_file(self, path: Path, read: Callable[[Path], object]) -> None:
        """Check one file by reading it as a run would."""
        try:
            read(path)
            self.checked += 1
        except FileNotFoundError:
            return  # a run that works here has removed it since
        except StoreError as error:
            self.faults.append(FileFault(path=path, problem="damaged", detail=error.found))

    def _note_strangers(self, paths: Iterable[Path]) -> None:
        """Note files that no run wrote; a traceback was written for people."""
        for path in paths:
            if path.name.startswith(_TRACEBACK):
                self.unchecked.append(path)
            else:
                self.faults.append(FileFault(path=path, problem="extra", detail="No run wrote it."))

    def _find_leftovers(self, folder: Path) -> None:
        """Find what a writer that was killed left half-written."""
        for path in sorted(filter(is_leftover, folder.rglob(".*.part"))):
            detail = "A run that was killed left it half-written; the next one removes it."
            self.faults.append(FileFault(path=path, problem="extra", detail=detail))


def _verify_note(path: Path) -> None:
    """Read a small file that carries its checksum, to verify it."""
    read_checked_json(path, do="Delete it.", code="note_damaged")


def _list_verified_folders(folder: Path) -> list[Path]:
    """The folders to verify in a folder that may be missing."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return []


def _list_verified_files(folder: Path) -> list[Path]:
    """The files to verify in a folder that may be missing; hidden ones are not among them."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    return []
