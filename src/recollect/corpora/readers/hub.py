"""`hf:NAME:SPLIT`: a data set of the Hugging Face hub, one saved in a folder, or one that is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from recollect.checks import suggest_name
from recollect.corpora.readers import arrow_rows
from recollect.corpora.readers.arrow_rows import iter_batch_rows
from recollect.corpora.readers.corpus_shards import Shard
from recollect.corpora.readers.faults import Fault
from recollect.errors import CorpusError
from recollect.files import read_json

SCHEME = "hf:"


def read_columns(shard: Shard) -> list[str]:
    """The columns of a data set of the hub."""
    found: list[str] = _open_dataset(shard).column_names
    return found


def iter_rows(shard: Shard, wanted: frozenset[str]) -> Iterator[tuple[int, dict[str, Any] | Fault]]:
    """The rows of a data set of the hub, numbered from 1; only the columns that are wanted."""
    dataset = _open_dataset(shard)
    chosen = select_columns(dataset, wanted)
    yield from iter_batch_rows(chosen.with_format("arrow").iter(batch_size=arrow_rows.ROWS_PER_BATCH))


def build_shard(ref: str) -> Shard:
    """The name of a data set of the hub as the one shard it has.

    Args:
        ref: `hf:NAME:SPLIT`, or `hf:NAME:CONFIGURATION:SPLIT`.
    """
    if not all(word.strip() for word in ref.split(":")) or not 3 <= len(ref.split(":")) <= 4:
        raise CorpusError(
            f"{ref} does not name a data set and a split.",
            do="Write hf:NAME:SPLIT, such as hf:imdb:train, or hf:NAME:CONFIGURATION:SPLIT.",
            code="missing_split",
        )
    return Shard(path=ref, format="hf")


def select_columns(dataset: Any, wanted: frozenset[str]) -> Any:
    """The data set of the hub with these columns only; nothing is copied."""
    return dataset.select_columns([name for name in dataset.column_names if name in wanted])


def find_saved_dataset(folder: Path) -> Shard | None:
    """The one shard of a data set that the hub's `save_to_disk` wrote into this folder; None if there is none.

    Raises:
        CorpusError: There are several splits.
    """
    if (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file():
        return Shard(path=str(folder), format="hf")
    if not (folder / "dataset_dict.json").is_file():
        return None
    with _explain_dataset_errors(str(folder)):
        splits = read_json(folder / "dataset_dict.json")["splits"]
    if len(splits) == 1:
        return Shard(path=str(folder / splits[0]), format="hf")
    raise CorpusError(
        f"{folder} holds a data set of {len(splits)} splits.",
        do=f"Name one of them as hf:{folder}:SPLIT. It has: {', '.join(splits)}.",
        code="missing_split",
    )


def _open_dataset(shard: Shard) -> Any:
    """The data set of the hub, memory-mapped unless it is in memory."""
    if shard.content is not None:
        return shard.content
    if not shard.path.startswith(SCHEME):
        return _load_from_disk(shard.path, Path(shard.path))
    ref = shard.path
    name, *configuration, split = ref.removeprefix(SCHEME).split(":")
    folder = Path(name)
    if (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file():
        return _load_saved_split(ref, folder, split)
    return _load_from_hub(ref, name, configuration[0] if configuration else None, split)


def _load_from_disk(ref: str, folder: Path) -> Any:
    """What `save_to_disk` of the hub's library wrote."""
    import datasets

    with _explain_dataset_errors(ref):
        return datasets.load_from_disk(str(folder))


def _load_saved_split(ref: str, folder: Path, split: str) -> Any:
    """One split of what `save_to_disk` of the hub's library wrote."""
    import datasets

    saved = _load_from_disk(ref, folder)
    splits = saved if isinstance(saved, datasets.DatasetDict) else {str(saved.split or "train"): saved}
    if split not in splits:
        raise CorpusError(
            f"{folder} has no split {split!r}.",
            do=f"{suggest_name(split, splits)}It has: {', '.join(splits)}.",
            code="unknown_split",
        )
    return splits[split]


@lru_cache(maxsize=8)
def _load_from_hub(ref: str, name: str, configuration: str | None, split: str) -> Any:
    """A data set of the hub, downloaded once, or a folder of data files; kept, for asking the hub takes time."""
    import datasets

    with _explain_dataset_errors(ref):
        return datasets.load_dataset(name, configuration, split=split)


@contextmanager
def _explain_dataset_errors(ref: str) -> Iterator[None]:
    """Errors of the hub's library of data sets in our words."""
    import pyarrow as pa
    from datasets.exceptions import DatasetsError

    try:
        yield
    except (DatasetsError, OSError, ValueError, KeyError, pa.ArrowException) as error:
        first = str(error).strip().split("\n")[0]
        raise CorpusError(
            f"{ref} cannot be loaded: {first}",
            do="Check the name, the split and the network; a folder written by save_to_disk works without one.",
            code="dataset_not_loaded",
        ) from error
