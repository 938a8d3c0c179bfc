"""Erasure: a person's texts, answers and the models trained on them leave the work folder.

What cannot be shown to be free of the person's data goes, too: it is computed again where it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from recollect.corpora.corpus import Corpus
from recollect.errors import PlanError, StoreError
from recollect.files import hold_lock, read_json, refuse_use
from recollect.files.checksums import is_regular, iter_files
from recollect.models.answer_store.manifest import MANIFEST, Manifest
from recollect.models.answer_store.shards import (
    SUFFIX,
    Digests,
    pack_shard_digests,
    read_record_digests,
    read_shard,
    write_shard,
)
from recollect.pipeline.work_folder.run_notes import iter_run_notes
from recollect.pipeline.work_folder.work_entries import (
    ENDPOINTS,
    WorkItem,
    build_work_item,
    delete_entry,
    iter_entries,
    refuse_other_folder,
)
from recollect.results.run_manifest import is_written_by_runs


@dataclass(frozen=True, kw_only=True)
class Erasure:
    """What leaves the work folder, and where the person is still named."""

    user: str
    work: Path
    items: tuple[WorkItem, ...]
    still_named: tuple[Path, ...]
    """Files of run folders that name the person: they are evidence, and stay until their owner deletes them."""
    deleted: bool
    """Whether the items have been deleted."""


def forget_user(user: str, work: Path, *, corpus: Corpus | None = None, delete_items: bool = False) -> Erasure:
    """Erase a person: find all of a work folder that was made from their records, and delete it on request.

    Args:
        user: Whose data.
        work: The work folder.
        corpus: A corpus with the person's records. With it only their rows leave answer stores, and models that were
            trained on other records stay; without it all stores go, and all models of which it cannot be told.
        delete_items: Delete it; otherwise nothing is changed.

    Raises:
        PlanError: The folder is no work folder, a run works in it, or the corpus has no record of the person.
        StoreError: A note about a run is damaged; or a run uses the folder, and something was to be deleted.
    """
    refuse_other_folder(work)
    records = None if corpus is None else _find_records_of_user(user, corpus)
    with refuse_use(work) if delete_items else nullcontext():
        return _erase_user(user, work, records, delete_items=delete_items)


def _erase_user(user: str, work: Path, records: _ErasedRecords | None, *, delete_items: bool) -> Erasure:
    """Find what goes when a person is erased, and delete it on request."""
    models = list(_find_models_of_user(user, work, None if records is None else records.ids))
    items = [
        *models,
        *_find_stores_to_erase(work, {item.path for item in models}, records),
        *_find_remains_to_erase(work),
    ]
    if busy := [item.path for item in items if item.in_use]:
        raise PlanError(
            f"A run works in '{busy[0]}'.", do="Wait for it to end, and run this again.", code="work_in_use"
        )
    named = tuple(_find_files_naming_user(user, work))
    if delete_items:
        # models go last: if this is killed, they still say whose answers are to be deleted when it is run again
        for item in reversed(items):
            if item.path.suffix == SUFFIX and records is not None:
                _rewrite_shard(item.path, records.digests)
            else:
                delete_entry(item.path)
    return Erasure(user=user, work=work, items=tuple(items), still_named=named, deleted=delete_items)


@dataclass(frozen=True)
class _ErasedRecords:
    """A person's records in a corpus."""

    ids: frozenset[str]
    digests: Digests


def _find_records_of_user(user: str, corpus: Corpus) -> _ErasedRecords:
    """The records of a person who is erased."""
    found = {record.id: record.digest for record in corpus if record.user == user}
    if not found:
        raise PlanError(
            f"The corpus {corpus.name!r} has no record of this user.",
            do="Check the name, the corpus, and --user-column.",
            code="unknown_user",
        )
    return _ErasedRecords(frozenset(found), pack_shard_digests(list(found.values())))


def _find_models_of_user(user: str, work: Path, ids: Collection[str] | None) -> Iterator[WorkItem]:
    """Models to erase: trained on a person's records, or it cannot be excluded that they were."""
    for folder in iter_entries(work, "models"):
        try:
            unit = read_json(folder / "card.json")["cohort"]["unit"]
            members = set(read_json(folder / "members.json"))
        except (OSError, ValueError, KeyError, TypeError):
            yield build_work_item(folder, "whose data it was trained on is not known")
            continue
        if unit == "user" and user in members:
            yield build_work_item(folder, "it was trained on the user's records")
        elif unit != "user" and (ids is None or not members.isdisjoint(ids)):
            known = "it was trained on the user's records" if ids is not None else "its members are records, not users"
            yield build_work_item(folder, known)


def _find_stores_to_erase(work: Path, models: Collection[Path], records: _ErasedRecords | None) -> Iterator[WorkItem]:
    """Answers of models that go, and answers about the person's records."""
    gone = {path.name for path in models}
    for folder in iter_entries(work, "answers"):
        try:
            manifest = Manifest.read(folder)
        except StoreError:
            yield build_work_item(folder, "what it holds cannot be read")
            continue
        if Path(manifest.name).name in gone:
            yield build_work_item(folder, "it holds the answers of a model that goes")
        elif records is None:
            yield build_work_item(folder, "whose records it holds cannot be told without a corpus")
        else:
            yield from _find_shards_of_user(folder, manifest.address, records)


def _find_shards_of_user(folder: Path, address: str, records: _ErasedRecords) -> Iterator[WorkItem]:
    """Shards to erase records from: those with answers about the person's records."""
    for path in sorted(folder.glob(f"[!.]*{SUFFIX}")):
        try:
            held = int(np.isin(read_record_digests(path, address), records.digests).sum())
        except StoreError:
            yield build_work_item(path, "what it holds cannot be read")
            continue
        if held:
            yield build_work_item(path, f"{held} of its records are the user's, and leave it")
    for path in sorted(each for each in folder.glob("[!.]*") if each.name != MANIFEST and each.suffix != SUFFIX):
        yield build_work_item(path, "unfinished answers may be about the user's records")


def _find_remains_to_erase(work: Path) -> Iterator[WorkItem]:
    """Workspaces of audits, answers of servers and tracebacks: all may rest on anybody's records."""
    for path in sorted((work / ENDPOINTS).glob("*/*/answers-*.journal")):
        yield build_work_item(path, "answers of a server may be about the user's records")
    for folder in iter_entries(work, "audits"):
        yield build_work_item(folder, "the unfinished work of an audit may rest on the user's records")
    for path in sorted(work.glob("traceback-*.txt")):
        yield build_work_item(path, "it may hold text of a corpus")


def _rewrite_shard(path: Path, digests: Digests) -> None:
    """Write a shard without the erased records; an unreadable one goes."""
    with hold_lock(path.parent, purpose="filling"):
        try:
            manifest = Manifest.read(path.parent)
            answers = read_shard(path, manifest.address)
        except StoreError:
            path.unlink(missing_ok=True)
            return
        staying = np.flatnonzero(~np.isin(pack_shard_digests(answers.records), digests))
        if len(staying):
            left = answers.select([answers.records[i] for i in staying])
            write_shard(path.parent, manifest.address, left, double=manifest.is_double)
        path.unlink()


def _find_files_naming_user(user: str, work: Path) -> Iterator[Path]:
    """Files of run folders that still name an erased person."""
    needle = json.dumps(user, ensure_ascii=False)[1:-1].encode()
    runs = sorted({run for _, run, _ in iter_run_notes(work) if run.is_dir()})
    files = (path for run in runs for name, path in _iter_erasable_run_files(run) if is_written_by_runs(name))
    for path in files:
        if path.suffix == ".parquet":
            if _names_user(path, user):
                yield path
        elif needle in path.read_bytes():
            yield path


def _iter_erasable_run_files(run: Path) -> Iterator[tuple[str, Path]]:
    """What may be the files of a run that name an erased person; nothing but regular files is read."""
    for folder in ("results", "tables"):
        yield from ((f"{folder}/{name}", path) for name, path in iter_files(run / folder) if is_regular(path))
    yield from ((path.name, path) for path in sorted(run.glob("[!.]*")) if is_regular(path))


def _names_user(path: Path, user: str) -> bool:
    """Whether a table still names an erased person; one that cannot be read may."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException):
        return True
    return any(user in column.to_pylist() for column in table.columns if pa.types.is_string(column.type))
