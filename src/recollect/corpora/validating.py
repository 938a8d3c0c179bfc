"""`read_corpus`: from a name, or an object in memory, to a corpus that was checked in one pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

from recollect.corpora.columns import Columns, Layout, array_layout_of, layout_of
from recollect.corpora.corpus import Corpus
from recollect.corpora.duplicates import find_repeats
from recollect.corpora.faults import Fault, describe_reason
from recollect.corpora.readers import hub, memory
from recollect.corpora.readers.formats import READERS
from recollect.corpora.readers.json_lines import PEEK
from recollect.corpora.readers.memory import Source
from recollect.corpora.reading import Reading
from recollect.corpora.shaping import as_whole
from recollect.corpora.shards import FORMATS, Shard, shards_of
from recollect.corpora.spill import Spill
from recollect.corpora.splitting import Split
from recollect.corpora.summary import summarise
from recollect.errors import CorpusError, PlanError
from recollect.settings import one_of


def read_corpus(
    source: Source,
    *,
    columns: Columns = Columns(),  # noqa: B008 - frozen
    format: str | None = None,
    split: Split | None = None,
    skip_bad: bool = False,
    running_text: bool = False,
) -> Corpus:
    """A corpus that was checked in one pass, before anything else happens.

    Formats: `.jsonl`, `.csv`, `.tsv`, `.parquet`, `.txt` and `.npz` (arrays `x` and `y`), each also `.gz` and
    `.zst`; a folder of such files, or a glob; `hf:NAME:SPLIT`. Records are pairs where there are a source and
    a target column, else texts, with a label where there is a label column; a text column that is named makes
    texts of anything. Without an id column, ids are line numbers (row numbers in tables and arrays), after the
    name of the file where there are several.

    Memory does not grow with the corpus: nothing is held but the record at hand, and every pass opens the
    files anew. What is wrong is a `CorpusError` that names file and line.

    In memory: list[str], list[dict], a pandas or polars DataFrame, a `datasets.Dataset`, a pyarrow Table. They give
    the records, ids and digest of a JSONL or Parquet file of the same content and types: a row's id is that of its
    id column, else its number from 1, never a DataFrame's index. Tables are not copied: do not change what you gave.

    >>> corpus = read_corpus([{"user": "ann", "text": "hello"}, {"user": "bob", "text": "good evening"}])
    >>> corpus.name, [(record.id, record.user, record.text) for record in corpus]
    ('list (2 rows)', [('1', 'ann', 'hello'), ('2', 'bob', 'good evening')])

    Args:
        source: Where the corpus lies (a folder may be one that `datasets.Dataset.save_to_disk` wrote), or its rows.
        columns: Which columns hold what.
        format: The format of the files, where their suffix does not say it.
        split: Cuts texts into sentences or windows; a piece keeps its user, and its id is `PARENT#i`, from 1.
        skip_bad: Drops bad records, and counts them by reason in `Corpus.skipped`. A damaged file stays an error.
        running_text: A text file is one running text, in place of a record per line.
    """
    shards = _shards(source, format, running_text)
    name = shards[0].path if shards[0].content is not None else str(source)
    layout = _layout(shards, columns)
    if split is not None and layout.text is None:
        raise CorpusError(
            f"{name} does not hold texts, and only texts can be split.", do="Read it without --split.", code="not_texts"
        )
    reading = Reading(shards=shards, layout=layout, split=split, skip_bad=skip_bad)
    return _checked(name, reading)


def _shards(source: Source, format: str | None, running: bool) -> tuple[Shard, ...]:
    """The files of the corpus, or what lies in memory."""
    if format is not None:
        one_of(FORMATS, format=format)
    if not isinstance(source, str | Path):
        if format or running:
            raise PlanError(
                "The format of files was given for a corpus in memory.",
                do="Leave format and running_text out.",
                code="not_a_file",
            )
        return (memory.build_shard(source),)
    if isinstance(source, str) and source.startswith(hub.SCHEME):
        return (hub.shard_of(source),)
    saved = hub.find_saved(Path(source)) if format is None else None
    return (saved,) if saved else shards_of(source, format=format, running=running)


def _layout(shards: tuple[Shard, ...], columns: Columns) -> Layout:
    """How the columns of the first file that has any make up a record."""
    for shard in shards:
        names = READERS[shard.format].names(shard)
        if names:
            found = array_layout_of if shard.format == "npz" else layout_of
            layout = found(names, columns, place=shard.path)
            return replace(layout, whole_labels=_whole_labels(shard, layout))
    raise _nothing(shards[0].path, Counter())


def _whole_labels(shard: Shard, layout: Layout) -> bool:
    """Whether the first labels are whole numbers; in a CSV file they are digits."""
    if layout.label is None:
        return False
    rows = (row for _, row in islice(READERS[shard.format].rows(shard, layout.used), PEEK))
    labels = [row.get(layout.label) for row in rows if not isinstance(row, Fault)]
    digits = shard.format in ("csv", "tsv", "tsv-plain")
    given = [label for label in labels if label not in (None, "")]
    return all(isinstance(label, int) or (digits and as_whole(label) is not None) for label in given)


def _checked(name: str, reading: Reading) -> Corpus:
    """The corpus after the one pass that finds its faults, its size and its digest."""
    ids: Spill | None = Spill() if reading.layout.id else None
    dropped: Counter[str] = Counter()
    summary = summarise(reading.records(dropped, None if ids is None else ids.add))
    repeats = None if ids is None else find_repeats(reading, ids)
    if repeats is not None:
        reading = replace(reading, repeats=repeats)
        dropped = Counter()
        summary = summarise(reading.records(dropped))
    if not summary.size:
        raise _nothing(name, dropped)
    return Corpus(name, reading, dict(sorted(dropped.items())), summary)


def _nothing(name: str, dropped: Counter[str]) -> CorpusError:
    """The error for a corpus in which no record is left."""
    if not dropped:
        return CorpusError(f"{name} holds no records.", do="Give at least one record.", code="empty_corpus")
    told = ", ".join(f"{describe_reason(reason)}: {count:,}" for reason, count in sorted(dropped.items()))
    return CorpusError(
        f"{name} holds no record that can be used ({told}).", do="Correct the records.", code="no_usable_record"
    )
