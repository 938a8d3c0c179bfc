"""Corpora in object storage: `s3://BUCKET/KEY`, read through Arrow. Options of the store are in the name's query.

`s3://bucket/train.jsonl?region=eu-west-1`, or `?endpoint_override=minio:9000&scheme=http` for a store of one's own.
Credentials come from the environment, from profiles or from the machine's role, and never from a name.
"""

from __future__ import annotations

from typing import IO, Any, Final
from urllib.parse import urlsplit

from recollect.checks import suggest_name
from recollect.errors import CorpusError

SCHEMES: Final = ("s3://", "gs://")


def is_in_object_storage(name: object) -> bool:
    """Whether a corpus is named by an address in object storage.

    >>> is_in_object_storage("s3://bucket/train.jsonl"), is_in_object_storage("train.jsonl")
    (True, False)
    """
    return isinstance(name, str) and name.startswith(SCHEMES)


def strip_storage_options(name: str) -> str:
    """The address of an object without the options of its storage.

    >>> strip_storage_options("s3://bucket/a.jsonl?region=eu-west-1")
    's3://bucket/a.jsonl'
    """
    return name.partition("?")[0]


def read_size_and_time(name: str) -> tuple[int, int]:
    """Size and time of change of an object.

    Raises:
        CorpusError: There is none, or the store does not let us see it.
    """
    from pyarrow.fs import FileType

    (info,) = _query_object_storage(name, lambda files, path: files.get_file_info([path]))
    if info.type != FileType.File:
        raise _build_missing_object_error(name)
    if not info.size:
        raise CorpusError(
            f"{strip_storage_options(name)} is empty.", do="Give a file with at least one record.", code="empty_file"
        )
    return info.size, info.mtime_ns or 0


def list_objects(name: str) -> list[str]:
    """The object of that name, or those below it, by name; not those in folders further below."""
    from pyarrow.fs import FileSelector, FileType

    (info,) = _query_object_storage(name, lambda files, path: files.get_file_info([path]))
    if info.type == FileType.File:
        return [name]
    below = _query_object_storage(
        name, lambda files, path: files.get_file_info(FileSelector(path, allow_not_found=True))
    )
    found = sorted(each.base_name for each in below if each.type == FileType.File and each.base_name[0] not in "._")
    if not found:
        raise _build_missing_object_error(name)
    address, mark, options = name.partition("?")
    return [f"{address.rstrip('/')}/{each}{mark}{options}" for each in found]


def open_object(name: str) -> IO[bytes]:
    """The bytes of an object, in which one can jump about; the caller closes it."""
    opened: IO[bytes] = _query_object_storage(name, lambda files, path: files.open_input_file(path))
    return opened


def _query_object_storage(name: str, question: Any) -> Any:
    """What object storage answers; one message where it does not."""
    from pyarrow.fs import FileSystem

    if urlsplit(name).password or urlsplit(name).username:
        raise CorpusError(
            "The address of a corpus holds credentials, which would be kept with the results.",
            do="Take them out of it; give them by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or by a profile.",
            code="credentials_in_address",
        )
    try:
        files, path = FileSystem.from_uri(name)
        return question(files, path)
    except FileNotFoundError as error:
        raise _build_missing_object_error(name) from error
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"{strip_storage_options(name)} cannot be read: {str(error).splitlines()[0]}",
            do="Check the address, the region and the credentials (AWS_ACCESS_KEY_ID …).",
            code="unreadable_object",
        ) from error


def _build_missing_object_error(name: str) -> CorpusError:
    """The error for an address in object storage where nothing is; it names what is nearby."""
    from pyarrow.fs import FileSelector, FileSystem

    address = strip_storage_options(name)
    nearby: list[str] = []
    try:
        files, path = FileSystem.from_uri(name)
        folder = path.rstrip("/").rpartition("/")[0]
        nearby = [each.base_name for each in files.get_file_info(FileSelector(folder))] if folder else []
    except (OSError, ValueError):
        pass
    return CorpusError(
        f"There is no object {address}.",
        do=f"{suggest_name(address.rpartition('/')[2], nearby)}Check the address.",
        code="missing_file",
    )
