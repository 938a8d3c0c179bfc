"""`read_corpus`: from a name, or an object in memory, to a corpus that was checked in one pass (duplicate ids too)."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect.checks import check_one_of
from recollect.corpora.corpus import Corpus, summarise_corpus
from recollect.corpora.readers import hub, memory
from recollect.corpora.readers.columns import Columns, Layout, infer_array_layout, infer_layout
from recollect.corpora.readers.corpus_shards import FORMATS, Shard, find_shards
from recollect.corpora.readers.faults import SKIP_ADVICE, Fault, describe_reason, quote_excerpt
from recollect.corpora.readers.format_table import READERS
from recollect.corpora.readers.json_lines import PEEK_ROWS
from recollect.corpora.readers.kept_records import RecordBuffer
from recollect.corpora.readers.memory import Source
from recollect.corpora.readers.object_storage import is_in_object_storage
from recollect.corpora.readers.read_limits import ReadLimits
from recollect.corpora.readers.record_reader import RecordReader, describe_location
from recollect.corpora.readers.row_parser import parse_integer
from recollect.corpora.record import Record
from recollect.corpora.segmentation import Split
from recollect.corpora.spill import Spill, hash_number
from recollect.errors import CorpusError, PlanError


def read_corpus(  # noqa: PLR0913 - one argument for each way in which a corpus can be read
    source: Source,
    *,
    columns: Columns = Columns(),  # noqa: B008 - frozen
    format: str | None = None,
    split: Split | None = None,
    skip_bad: bool = False,
    running_text: bool = False,
    limits: ReadLimits = ReadLimits(),  # noqa: B008 - frozen
) -> Corpus:
    """A corpus that was checked in one pass, before anything else happens.

    Formats: `.jsonl`, `.csv`, `.tsv`, `.parquet`, `.txt` and `.npz` (arrays `x` and `y`), each also `.gz` and
    `.zst`; a folder of such files, or a glob; `hf:NAME:SPLIT`. Records are pairs where there are a source and
    a target column, else texts, with a label where there is a label column; a text column that is named makes
    texts of anything. Without an id column, ids are line numbers (row numbers in tables and arrays), after the
    name of the file where there are several.

    Memory does not grow with the corpus: of a large one, nothing is held but the record at hand, and every pass opens
    the files anew; a small one, of some four megabytes, is read once and kept. What is wrong is a `CorpusError` that
    names file and line.

    In memory: list[str], list[dict], a pandas or polars DataFrame, a `datasets.Dataset`, a pyarrow Table. They give
    the records, ids and digest of a JSONL or Parquet file of the same content and types: a row's id is that of its
    id column, else its number from 1, never a DataFrame's index. Tables are not copied: do not change what you gave.

    >>> corpus = read_corpus([{"user": "ann", "text": "hello"}, {"user": "bob", "text": "good evening"}])
    >>> corpus.name, [(record.id, record.user, record.text) for record in corpus]
    ('list (2 rows)', [('1', 'ann', 'hello'), ('2', 'bob', 'good evening')])

    Args:
        source: Where the corpus is (a folder may be one that `datasets.Dataset.save_to_disk` wrote), or its rows.
        columns: Which columns hold what.
        format: The format of the files, where their suffix does not say it.
        split: Cuts texts into sentences or windows; a piece keeps its user, and its id is `PARENT#i`, from 1.
        skip_bad: Drops bad records, and counts them by reason in `Corpus.skipped`. A damaged file stays an error.
        running_text: A text file is one running text, in place of a record per line.
        limits: How long a record may be, and how far a compressed file may expand.
    """
    shards = _find_source_shards(source, format, running_text, limits)
    name = shards[0].path if shards[0].content is not None else str(source)
    layout = _infer_corpus_layout(shards, columns, skip_bad=skip_bad)
    if split is not None and layout.text is None:
        raise CorpusError(
            f"{name} does not hold texts, and only texts can be split.", do="Read it without --split.", code="not_texts"
        )
    reader = RecordReader(shards=shards, layout=layout, split=split, skip_bad=skip_bad)
    return _check_corpus(name, reader)


def _find_source_shards(
    source: Source, format: str | None, running_text: bool, limits: ReadLimits
) -> tuple[Shard, ...]:
    """The files of the corpus that is read, or what is in memory."""
    if format is not None:
        check_one_of(FORMATS, format=format)
    if not isinstance(source, str | Path):
        if format or running_text:
            raise PlanError(
                "The format of files was given for a corpus in memory.",
                do="Leave format and running_text out.",
                code="not_a_file",
            )
        return (memory.build_shard(source),)
    if isinstance(source, str) and source.startswith(hub.SCHEME):
        return (hub.build_shard(source),)
    local = not is_in_object_storage(source)
    saved = hub.find_saved_dataset(Path(source)) if format is None and local else None
    return (saved,) if saved else find_shards(source, format=format, running_text=running_text, limits=limits)


def _infer_corpus_layout(shards: tuple[Shard, ...], columns: Columns, *, skip_bad: bool) -> Layout:
    """How the columns of the first file of a corpus that has any make up a record."""
    for shard in shards:
        names = READERS[shard.format].read_columns(shard)
        if names:
            found = infer_array_layout if shard.format == "npz" else infer_layout
            layout = found(names, columns, location=shard.path)
            return replace(layout, integer_labels=_has_integer_labels(shard, layout))
    raise _build_empty_corpus_error(shards[0].path, _explain_unreadable(shards, skip_bad=skip_bad))


def _explain_unreadable(shards: tuple[Shard, ...], *, skip_bad: bool) -> Counter[str]:
    """Why no record of the files of a corpus can be read; the first bad one is an error, where they are not skipped."""
    dropped = Counter[str]()
    for shard in shards:
        for number, row in READERS[shard.format].iter_rows(shard, frozenset()):
            if isinstance(row, Fault):
                if not skip_bad:
                    raise row.to_error(describe_location(shard, number))
                dropped[row.reason] += 1
    return dropped


def _has_integer_labels(shard: Shard, layout: Layout) -> bool:
    """Whether the first labels of the corpus that is read are whole numbers; in a CSV file they are digits."""
    if layout.label is None:
        return False
    rows = (row for _, row in islice(READERS[shard.format].iter_rows(shard, layout.column_names), PEEK_ROWS))
    labels = [row.get(layout.label) for row in rows if not isinstance(row, Fault)]
    digits = shard.format in ("csv", "tsv", "tsv-plain")
    given = [label for label in labels if label not in (None, "")]
    return all(isinstance(label, int) or (digits and parse_integer(label) is not None) for label in given)


def _check_corpus(name: str, reader: RecordReader) -> Corpus:
    """The corpus after the one pass that finds its faults, its size and its digest."""
    ids: Spill | None = Spill() if reader.layout.id else None
    dropped, kept = Counter[str](), RecordBuffer()
    summary = summarise_corpus(reader.iter_records(dropped, None if ids is None else ids.add), kept.add)
    duplicates = None if ids is None else find_duplicate_ids(reader, ids)
    if duplicates is not None:
        reader = replace(reader, duplicates=duplicates)
        dropped, kept = Counter(), RecordBuffer()
        summary = summarise_corpus(reader.iter_records(dropped), kept.add)
    if not summary.size:
        raise _build_empty_corpus_error(name, dropped)
    return Corpus(name, kept.choose_source(reader), dict(sorted(dropped.items())), summary)


def _build_empty_corpus_error(name: str, dropped: Counter[str]) -> CorpusError:
    """The error for a corpus in which no record is left."""
    if not dropped:
        return CorpusError(f"{name} holds no records.", do="Give at least one record.", code="empty_corpus")
    counts = ", ".join(f"{describe_reason(reason)}: {count:,}" for reason, count in sorted(dropped.items()))
    return CorpusError(
        f"{name} holds no record that can be used ({counts}).", do="Correct the records.", code="no_usable_record"
    )


IDS_PER_PASS = 1 << 18
"""How many ids are compared in one pass, which bounds the memory this takes."""


def find_duplicate_ids(reader: RecordReader, ids: Spill) -> NDArray[np.int64] | None:
    """For the check of a whole corpus: the numbers of records that repeat an earlier id; None if there are none.

    Without `skip_bad` the first such record is an error. A corpus without repeats costs no further pass, but
    for about one in a billion of 100,000 records, in which two different ids share a hash.

    Args:
        reader: How the records are read.
        ids: The ids of all whole records.
    """
    found = array("q")
    for candidate_hashes in _iter_repeated_hashes(ids):
        found.extend(_confirm_duplicates(reader, candidate_hashes))
    return np.sort(np.frombuffer(found, dtype=np.int64)) if found else None


def _iter_repeated_hashes(ids: Spill) -> Iterator[frozenset[int]]:
    """For the check of a whole corpus: hashes of ids that came more than once, as many as fit into one pass."""
    portion: set[int] = set()
    for hashes in ids.iter_repeated():
        portion.update(hashes.tolist())
        if len(portion) >= IDS_PER_PASS:
            yield frozenset(portion)
            portion.clear()
    if portion:
        yield frozenset(portion)


def _confirm_duplicates(reader: RecordReader, candidate_hashes: frozenset[int]) -> array[int]:
    """For the check of a whole corpus: the records whose id has one of these hashes and truly came before."""
    found = array("q")
    first: dict[str, str] = {}
    for ordinal, (shard, number, outcome) in enumerate(reader.iter_located()):
        if not isinstance(outcome, Record) or hash_number(outcome.id) not in candidate_hashes:
            continue
        here = describe_location(shard, number)
        if outcome.id not in first:
            first[outcome.id] = here
        elif reader.skip_bad:
            found.append(ordinal)
        else:
            raise _build_duplicate_fault(outcome.id, first[outcome.id]).to_error(here)
    return found


_ADVICE = (
    "Give every record an id of its own, name another column with --id-column (--id-column '' for none: records are "
    f"then known by their line). {SKIP_ADVICE}"
)


def _build_duplicate_fault(identity: str, first: str) -> Fault:
    """For the check of a whole corpus: the fault of an id that was used before."""
    return Fault("duplicate_id", f"the id {quote_excerpt(identity)} was already used in {first}.", do=_ADVICE)
