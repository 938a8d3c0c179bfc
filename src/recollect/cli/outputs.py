"""Corpora that a verb writes, and what it writes beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.cli import console
from recollect.errors import PlanError

if TYPE_CHECKING:
    from recollect.corpora.corpus import Corpus
    from recollect.corpora.record import Record


def refuse_output(out: Path, ref: str, file_format: str | None) -> None:
    """Refuse, before any work, a file that cannot be written or that would change the corpus it is made from."""
    from recollect.corpora.readers.hub import SCHEME
    from recollect.corpora.shards import shards_of
    from recollect.corpora.writing import refuse_other_names

    refuse_other_names(out)
    if ref.startswith(SCHEME):
        return
    inputs = {Path(shard.path).resolve() for shard in shards_of(ref, format=file_format)}
    if out.resolve() in inputs:
        raise PlanError(f"{out} is the corpus itself.", do="Write to another file.")
    if Path(ref).is_dir() and out.resolve().parent == Path(ref).resolve():
        raise PlanError(f"{out} would become a part of the corpus {ref}.", do="Write to another folder.")


def beside(out: Path, ending: str) -> Path:
    """The file that belongs to a written corpus.

    >>> beside(Path("runs/planted.jsonl.gz"), "canaries.json").as_posix()
    'runs/planted.canaries.json'
    """
    return out.with_name(f"{out.name.removesuffix('.gz').removesuffix('.jsonl')}.{ending}")


def write_with_progress(corpus: Corpus, out: Path, *, total: int | None = None) -> None:
    """Write a corpus, and say how far it is if that takes long."""
    from recollect.corpora.writing import write_corpus

    with console.progress(f"writing {out.name}") as shown:
        write_corpus(_counted(corpus, shown, total), out)


def _counted(corpus: Corpus, shown: console.Progress, total: int | None) -> Iterator[Record]:
    """The records, told as they pass."""
    for done, record in enumerate(corpus):
        if done % 1000 == 0:
            shown(done, total)
        yield record
