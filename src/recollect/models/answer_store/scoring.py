"""Scoring a corpus with a model: only records not scored before, block by block, so that a killed run can resume."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import ModelError, RecollectError, StoreError
from recollect.execution.backend import Backend, Failure
from recollect.execution.local import LocalBackend
from recollect.files import hold_lock
from recollect.models.answer_store.batch_journal import (
    BatchJournal,
    Report,
    TokenRate,
    keep_batches,
    remove_dead_journals,
)
from recollect.models.answer_store.manifest import BLOCK_SIZE, MANIFEST, Manifest
from recollect.models.answer_store.recorded_model import RecordedModel
from recollect.models.answer_store.shards import Digests, build_shard_name, pack_shard_digests, write_shard
from recollect.models.answer_store.soundness import refuse_unsound_answers
from recollect.models.answer_store.store import AnswerStore, split_by_length
from recollect.models.answers import Answers
from recollect.models.limited import Limited
from recollect.models.loading.known_models import prepare_note
from recollect.models.loading.loader import load_model
from recollect.models.model import Model, compute_address

Source = Model | str | Callable[[], Model]
"""A model, its name, or a function that loads it."""
Progress = Callable[[int, int, str], None]
"""Called with how many distinct records have been scored, how many there are, and how fast it goes."""
SORTED_PIECE = 1 << 16
"""Records that are looked up in a store at once."""
MAX_FAILURES_BEFORE_SUCCESS = 8
"""Blocks that may fail before one succeeds: then the fault is not in the records."""


def score_corpus(
    model: Source,
    corpus: Corpus,
    work: Path,
    *,
    backend: Backend | None = None,
    progress: Progress | None = None,
    block: int = BLOCK_SIZE,
) -> AnswerStore:
    """Score a corpus with a model; the store with its answers. Only what was not scored before is scored.

    Killed at any moment and called again on the same machine with as many threads, it ends with the same bytes as if it
    had never been killed; with another number of threads, numbers differ by rounding. Records with the same content are
    scored once. A limited model is scored at its full access, and the store that is returned shows what the limited one
    would have; a recorded model is its own store.

    Args:
        model: The model, its name, or how to load it: `partial(load_model, "hf:gpt2", question=…)`. With several
            workers each loads its own; a model that is already loaded is copied to each.
        corpus: The records to score.
        work: The work folder; the store is in `answers/<address>` there.
        backend: Where to compute; this process if not given.
        progress: Called as batches are done, or blocks where several workers compute.
        block: Records per shard, in a store that is new.

    Raises:
        ModelError: Some blocks could not be scored; the others have been, and will not be scored again.
        StoreError: What is at this address is damaged or belongs to something else.
    """
    backend = backend or LocalBackend()
    loaded = load_source(model)
    limits = (loaded.access, loaded.min_probability) if isinstance(loaded, Limited) else None
    unlimited = _unwrap_limited(loaded)
    if isinstance(unlimited, RecordedModel):
        unlimited.refuse_unknown(corpus)
        store = unlimited.store
    else:
        if getattr(unlimited, "remote", False):
            backend = LocalBackend(threads=backend.threads)  # its requests are sent at once from one process
        folder = work / "answers" / compute_address(unlimited)
        manifest = _find_scoring_manifest(unlimited, folder) or Manifest.of(unlimited, block=block)
        source, note_model = unlimited if backend.in_process else model, prepare_note(unlimited)
        # while workers have their own copies, this process can do without
        del loaded, unlimited
        writer = _BlockScorer(source, folder, manifest, backend.threads)
        store = _fill_store(writer, corpus, backend, progress)
        note_model(work)
    return store if limits is None else store.limited(limits[0], min_probability=limits[1])


def find_stored(model: Model, corpus: Corpus, work: Path) -> NDArray[np.bool_]:
    """Which records of a corpus need no scoring with a model, because a work folder has their answers; in their order.

    Raises:
        StoreError: What is at this address is damaged or belongs to something else.
    """
    unlimited = _unwrap_limited(model)
    if isinstance(unlimited, RecordedModel):
        return np.ones(len(corpus), dtype=np.bool_)
    folder = work / "answers" / compute_address(unlimited)
    if _find_scoring_manifest(unlimited, folder) is None:
        return np.zeros(len(corpus), dtype=np.bool_)
    return AnswerStore.open(folder).contains(_collect_digests(corpus))


def _collect_digests(corpus: Corpus) -> Digests:
    """The digests of the records to be scored, in their order."""
    return np.fromiter((bytes.fromhex(record.digest) for record in corpus), dtype="S16")


@dataclass(frozen=True)
class _BlockScorer:
    """Scores a block of records and writes the answers; a worker keeps one, and so its model."""

    source: Source
    folder: Path
    manifest: Manifest
    threads: int
    """How many threads compute."""
    report: Report | None = None
    """Called after each batch; only in this process."""

    @cached_property
    def model(self) -> Model:
        """The model that scores the blocks, loaded when it is first needed."""
        return _unwrap_limited(load_source(self.source))

    def __call__(self, records: list[Record]) -> int:
        """Score, write, and return how many records are done."""
        digests = tuple(record.digest for record in records)
        shard = self.folder / build_shard_name(self.manifest.address, digests)
        if shard.exists():
            return len(records)  # a worker that was lost since then has written it
        if self.manifest.budget is not None:
            # also after memory ran out in an earlier block: what a block gives must not depend on those before it
            self.model.budget = self.manifest.budget  # type: ignore[attr-defined]
        with self._keep_batches(shard, digests) as journal:
            answers = self._score(records, digests)
            threads = (self.threads,) if journal is None else journal.threads
            write_shard(self.folder, self.manifest.address, answers, double=self.manifest.is_double, threads=threads)
        return len(records)

    @contextmanager
    def _keep_batches(self, shard: Path, digests: Sequence[str]) -> Iterator[BatchJournal | None]:
        """While this lasts, finished batches go to a journal, for models that work in batches."""
        batches = getattr(self.model, "batches", None)
        if batches is None:
            yield None
            return
        owner = f"{shard.name} {self.manifest.budget}"
        records = pack_shard_digests(digests)
        with keep_batches(shard, records, owner=owner, threads=self.threads, report=self.report) as journal:
            batches.journal = journal
            try:
                yield journal
            finally:
                batches.journal = None

    def _score(self, records: list[Record], digests: tuple[str, ...]) -> Answers:
        """The answers about a block, which are refused if they cannot be right."""
        answers = self.model.answer(records)
        refuse_unsound_answers(answers, self.manifest.access, model=self.manifest.name)
        if answers.records != digests:
            raise ModelError(
                f"Model {self.manifest.name!r} did not score the given records in their order.",
                do="This is a bug in the code that wraps the model (an adapter, or code of your own).",
                code="answers_out_of_order",
            )
        return answers


def _fill_store(writer: _BlockScorer, corpus: Corpus, backend: Backend, progress: Progress | None) -> AnswerStore:
    """The store, after the scoring of all missing blocks."""
    work = writer.folder.parents[1]
    with backend.hold(work, purpose="scoring into"), hold_lock(writer.folder, purpose="filling"):
        writer = replace(writer, manifest=_settle_scoring_manifest(writer))
        digests = _collect_digests(corpus)
        missing, distinct = _find_unscored(digests, AnswerStore.open(writer.folder))
        wanted = int(missing.sum())
        report = _ScoringReporter(progress or (lambda done, total, note: None), distinct, wanted)
        if backend.in_process:
            writer = replace(writer, report=report.add_batch)
        done, failures = 0, list[Failure]()
        for outcome in backend.map(writer, report.watch(compress(corpus, missing), writer.manifest.block)):
            if isinstance(outcome, Failure):
                failures.append(outcome)
                final = isinstance(outcome.error, RecollectError) and outcome.error.final
                if final or (not done and len(failures) == MAX_FAILURES_BEFORE_SUCCESS):
                    break
            else:
                done += outcome.value
                report.set_done(done)
        remove_dead_journals(writer.folder, AnswerStore.open(writer.folder).contains)
    if failures:
        raise _build_scoring_failure(failures, writer.manifest.name, done, wanted) from failures[0].error
    return AnswerStore.open(writer.folder)


class _ScoringReporter:
    """Tells how many records are scored: whole blocks, and the share of the one that is being computed."""

    def __init__(self, progress: Progress, distinct: int, wanted: int) -> None:
        self._progress, self._total, self._before = progress, distinct, distinct - wanted
        self._done, self._block, self._rate = 0, 0, TokenRate()
        self._tell(0)

    def watch(self, records: Iterable[Record], size: int) -> Iterator[list[Record]]:
        """The records in blocks; the last that was taken is the one that is being computed."""
        for block in split_by_length(records, size):
            self._block = len(block)
            yield block

    def add_batch(self, items: int, total: int, tokens: int) -> None:
        """A batch is done: so many items of the block's total, so many tokens that were not stored before."""
        self._rate.add(tokens)
        self._tell(self._done + (self._block * items) // max(1, total))

    def set_done(self, done: int) -> None:
        """So many records of whole blocks are done."""
        self._done = done
        self._tell(done)

    def _tell(self, done: int) -> None:
        """Report the progress."""
        self._progress(self._before + done, self._total, str(self._rate))


def _settle_scoring_manifest(writer: _BlockScorer) -> Manifest:
    """The manifest that scoring goes by: the one that is already there, or this one, written before scoring."""
    if not (writer.folder / MANIFEST).exists():
        writer.manifest.write(writer.folder)
        return writer.manifest
    existing = Manifest.read(writer.folder)
    if (existing.address, existing.access) != (writer.manifest.address, writer.manifest.access):
        raise _build_foreign_store_error(writer.folder, writer.manifest.name)
    return existing


def _find_scoring_manifest(model: Model, folder: Path) -> Manifest | None:
    """The manifest of a model's answers, if some are kept: it needs nothing for which a model would be loaded."""
    if not (folder / MANIFEST).exists():
        return None
    existing = Manifest.read(folder)
    if (existing.address, existing.access) != (folder.name, replace(model.access, steps=False)):
        raise _build_foreign_store_error(folder, model.name)
    return existing


def _build_foreign_store_error(folder: Path, name: str) -> StoreError:
    """Why a store cannot be used for scoring with a model."""
    return StoreError(
        f"The answer store '{folder}' is not of model {name!r} as it is now.",
        do="Delete that folder, and the records will be scored again.",
        code="store_of_another_model",
    )


def _find_unscored(digests: Digests, store: AnswerStore) -> tuple[NDArray[np.bool_], int]:
    """Which records the scoring still has to do, each content once; and how many different ones there are."""
    # piece by piece: np.unique would hold four copies of what grows with the corpus
    order, missing, distinct = digests.argsort(kind="stable"), np.zeros(len(digests), dtype=np.bool_), 0
    for start in range(0, len(order), SORTED_PIECE):
        piece = order[max(0, start - 1) : start + SORTED_PIECE]
        found = digests[piece]
        first = piece[1:][found[1:] != found[:-1]]
        first = first if start else np.insert(first, 0, piece[0])
        distinct += len(first)
        missing[first[~store.contains(digests[first])]] = True
    return missing, distinct


def _build_scoring_failure(failures: list[Failure], name: str, done: int, wanted: int) -> ModelError:
    """All failures of scoring in one error; what they have in common is stated once."""
    errors = [failure.error for failure in failures]
    reasons = dict.fromkeys(failure.describe() for failure in failures)
    shown = " ".join(list(reasons)[:3]) + (f" (and {len(reasons) - 3} other reasons)" if len(reasons) > 3 else "")
    remedy = next((e.do for e in errors if isinstance(e, RecollectError) and e.do), "")
    kept = f"The scores of {done} of {wanted} records were kept: run the same again, and only the others are scored."
    kept = kept if done or not remedy else ""
    error = ModelError(
        f"Model {name!r} could not score {wanted - done} of {wanted} records. {shown}",
        do=f"{remedy} {kept}".strip(),
        code="scoring_failed",
    )
    error.add_note(failures[0].traceback)
    error.traceback = next((f.traceback for f in failures if not isinstance(f.error, RecollectError)), "")
    return error


def load_source(source: Source) -> Model:
    """The model that the scoring uses, which is loaded unless it was before."""
    if isinstance(source, str):
        return load_model(source)
    return source if isinstance(source, Model) else source()


def _unwrap_limited(model: Model) -> Model:
    """The model behind a limited one: scoring stores all that it shows."""
    return model.model if isinstance(model, Limited) else model
