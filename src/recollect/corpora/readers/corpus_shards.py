"""From the name of a corpus to the files it is in."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from recollect.checks import suggest_name
from recollect.corpora.readers.object_storage import (
    is_in_object_storage,
    list_objects,
    read_size_and_time,
    strip_storage_options,
)
from recollect.corpora.readers.read_limits import ReadLimits
from recollect.errors import CorpusError

FORMATS = ("jsonl", "csv", "tsv", "tsv-plain", "parquet", "txt", "npz")
COMPRESSIONS = ("gz", "zst")
Stamp = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Shard:
    """One file of a corpus, or all of a corpus that is in memory."""

    path: str
    """The file; of what is in memory, a name such as "DataFrame (120 rows)"."""
    format: str
    compression: str = ""
    """How it is compressed: "gz", "zst" or not at all."""
    prefix: str = ""
    """What is before the line number in ids: empty in a corpus of one file."""
    stamp: Stamp | None = None
    """Size and time of change when the corpus was named; None where there is no file."""
    running_text: bool = False
    """Whether a text file is one running text, instead of a record per line."""
    limits: ReadLimits = field(default_factory=ReadLimits)
    """How much of the file is believed."""
    passes: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The digest of what the first whole pass over the file read, once there was one."""
    content: Any = field(default=None, repr=False, compare=False)
    """The rows themselves, where they are in memory."""

    @property
    def size(self) -> int:
        """How many bytes the file has."""
        return read_stamp(self.path)[0]

    def check_unchanged(self) -> None:
        """Refuse a file that is not what it was when the corpus was named."""
        if self.stamp is not None and read_stamp(self.path) != self.stamp:
            raise CorpusError(
                f"{self.path} has changed since it was first read.", do="Read the corpus again.", code="file_changed"
            )

    def check_digest(self, digest: str) -> None:
        """Refuse a file of which another whole pass read something else: size and time can be the same."""
        if self.passes.setdefault("digest", digest) != digest:
            raise CorpusError(
                f"{self.path} has changed since it was first read.", do="Read the corpus again.", code="file_changed"
            )


def read_stamp(name: str | Path) -> Stamp:
    """Size and time of change of a shard; an error if there is no file that can be read again."""
    if is_in_object_storage(name):
        return read_size_and_time(str(name))
    path = Path(name)
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise build_missing_file_error(path) from error
    except OSError as error:
        raise build_unreadable_error(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise CorpusError(
            f"{path} is not an ordinary file.",
            do="A corpus is read more than once: write it to a file first.",
            code="not_a_file",
        )
    if status.st_size == 0:
        raise CorpusError(f"{path} is empty.", do="Give a file with at least one record.", code="empty_file")
    return status.st_size, status.st_mtime_ns


def build_missing_file_error(path: Path) -> CorpusError:
    """The error for a shard's path where nothing is; it names what is nearby."""
    folder = path.parent
    while not folder.is_dir() and folder != folder.parent:
        path, folder = folder, folder.parent
    names = sorted(entry.name for entry in folder.iterdir()) if os.access(folder, os.R_OK) else []
    return CorpusError(
        f"There is no file {path}.",
        do=f"{suggest_name(path.name, names)}Looked in {folder.resolve()}.",
        code="missing_file",
    )


def build_unreadable_error(path: Path | str, error: OSError) -> CorpusError:
    """The error for a file of a corpus that the system does not let us read."""
    return CorpusError(
        f"{path} cannot be read: {error.strerror or error}.",
        do="Check its permissions and the disk it is on.",
        code="unreadable_file",
    )


def find_shards(
    ref: str | Path,
    *,
    format: str | None = None,
    running_text: bool = False,
    limits: ReadLimits = ReadLimits(),  # noqa: B008 - frozen
) -> tuple[Shard, ...]:
    """The files of a corpus in a stable order.

    Args:
        ref: A file, a folder of shards, a glob, or an address in object storage.
        format: The format of every file; by default each file's suffix says it.
        running_text: Whether a text file is one running text.
        limits: How much of each file is believed.
    """
    if is_in_object_storage(ref):
        shards = _find_objects(str(ref), format, running_text)
        return tuple(replace(shard, limits=limits) for shard in shards)
    path = Path(ref)
    if path.is_dir():
        files, root = _list_folder(path, format), path
    elif glob.has_magic(str(ref)) and not path.exists():
        files, root = _match_glob(str(ref)), _get_fixed_folder_of_glob(str(ref))
    else:
        files, root = [path], None
    found = (_build_file_shard(file, root, format, running_text) for file in files)
    return tuple(replace(shard, limits=limits) for shard in found)


def _find_objects(ref: str, format: str | None, running_text: bool) -> Iterator[Shard]:
    """The shards of a corpus in object storage: one object, or all below a name."""
    names = list_objects(ref)
    below = names != [ref]
    for name in names:
        shard = _build_file_shard(name, None, format, running_text)
        yield replace(shard, prefix=f"{strip_storage_options(name).rpartition('/')[2]}:") if below else shard


def _build_file_shard(file: Path | str, root: Path | None, format: str | None, running_text: bool) -> Shard:
    """One file of a corpus as a shard, its format and packing found out."""
    stamp = read_stamp(file)
    suffix, compression = parse_suffixes(strip_storage_options(str(file)).rpartition("/")[2])
    if (format or suffix) not in FORMATS:
        raise CorpusError(
            f"The suffix of {file} does not say what it holds.",
            do=f"{suggest_name(suffix, FORMATS)}Say it with --file-format (format=…): {', '.join(FORMATS)}.",
            code="unknown_format",
        )
    prefix = "" if root is None else f"{Path(file).relative_to(root).as_posix()}:"
    return Shard(
        path=str(file),
        format=format or suffix,
        compression=compression,
        prefix=prefix,
        stamp=stamp,
        running_text=running_text,
    )


def parse_suffixes(name: str) -> tuple[str, str]:
    """Format and packing of a file of a corpus, as the end of its name tells them.

    >>> parse_suffixes("notes.JSONL.gz"), parse_suffixes("notes.txt"), parse_suffixes("notes")
    (('jsonl', 'gz'), ('txt', ''), ('', ''))
    """
    endings = name.lower().split(".")[1:]
    compression = endings.pop() if endings and endings[-1] in COMPRESSIONS else ""
    return endings[-1] if endings else "", compression


def _list_folder(folder: Path, format: str | None) -> list[Path]:
    """The shards that are in a folder, by name; files whose name begins with . or _ are not shards."""
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file() and file.name[0] not in "._")
    except OSError as error:
        raise build_unreadable_error(folder, error) from error
    shards = [file for file in files if format or parse_suffixes(file.name)[0] in FORMATS]
    kinds = sorted({parse_suffixes(file.name)[0] for file in shards})
    if not shards:
        endings = ", ".join(f".{name}" for name in FORMATS if name != "tsv-plain")
        raise CorpusError(
            f"The folder {folder} holds no shards.",
            do=f"A shard's name ends in one of {endings} (also .gz and .zst); for other names say --file-format "
            "(format=…).",
            code="no_shards",
        )
    if len(kinds) > 1 and not format:
        raise CorpusError(
            f"The folder {folder} holds files of different formats: {', '.join(kinds)}.",
            do=f"Name those you mean, such as '{folder}/*.{kinds[0]}'.",
            code="mixed_formats",
        )
    return shards


def _match_glob(pattern: str) -> list[Path]:
    """The files of a corpus that a glob matches, by path."""
    found = sorted(Path(name) for name in glob.glob(pattern, recursive=True))  # noqa: PTH207 - absolute globs too
    files = [path for path in found if path.is_file()]
    if not files:
        raise CorpusError(
            f"No file matches {pattern}.",
            do=f"Looked below {_get_fixed_folder_of_glob(pattern).resolve()}.",
            code="no_match",
        )
    return files


def _get_fixed_folder_of_glob(pattern: str) -> Path:
    """The nearest folder above the first part of a glob that may vary."""
    return next(folder for folder in Path(pattern).parents if not glob.has_magic(str(folder)))
