"""Asking a model about a corpus: only what was not asked before, block by block, so that a killed run can go on."""

from __future__ import annotations

from collections.abc import Callable
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
from recollect.models.limited import Limited
from recollect.models.loading import load_model
from recollect.models.manifest import BLOCK, MANIFEST, Manifest
from recollect.models.model import Model
from recollect.models.recorded import Recorded
from recollect.models.shards import Digests, write_shard
from recollect.models.soundness import refuse_unsound
from recollect.models.store import AnswerStore, blocks, filling

Source = Model | str | Callable[[], Model]
"""A model, its name, or a function that loads it."""
Progress = Callable[[int, int], None]
"""Told how many distinct records have been answered, and how many there are."""
ENOUGH = 8
"""Blocks that may fail before one succeeds: then the fault is not in the records."""


def ask(
    model: Source,
    corpus: Corpus,
    work: Path,
    *,
    backend: Backend | None = None,
    progress: Progress | None = None,
    block: int = BLOCK,
) -> AnswerStore:
    """The store that holds this model's answers to this corpus, once all that was not asked before has been.

    Killed at any moment and called again on the same machine, it ends with the same bytes as if it had never been
    killed. Records with the same content are asked once. A limited model is asked for all it could show, and the
    store that is returned shows what the limited one would have; a recorded model is its own store.

    Args:
        model: The model, its name, or how to load it: `partial(load_model, "hf:gpt2", question=…)`. With several
            workers each loads its own; a model that is already loaded is copied to each.
        corpus: What to ask about.
        work: The work folder; the store lies in `answers/<address>` there.
        backend: Where to compute; this process if not given.
        progress: Told as blocks are done.
        block: Records per shard, in a store that is new.

    Raises:
        ModelError: Some blocks could not be asked; the others have been, and will not be asked again.
        StoreError: What lies at this address is damaged or belongs to something else.
    """
    backend = backend or LocalBackend()
    loaded = _loaded(model)
    limits = (loaded.access, loaded.least) if isinstance(loaded, Limited) else None
    whole = _whole(loaded)
    if isinstance(whole, Recorded):
        whole.refuse_unknown(corpus)
        store = whole.store
    else:
        manifest = Manifest.of(whole, threads=backend.threads, block=block)
        source = whole if backend.workers == 1 else model
        # while workers have their own copies, this process can do without
        del loaded, whole
        store = _filled(_Scribe(source, work / "answers" / manifest.address, manifest), corpus, backend, progress)
    return store if limits is None else store.limited(limits[0], least=limits[1])


@dataclass(frozen=True)
class _Scribe:
    """Asks about a block of records and writes down the answers; a worker keeps one, and so its model."""

    source: Source
    folder: Path
    manifest: Manifest

    @cached_property
    def model(self) -> Model:
        """The whole model, loaded when it is first needed."""
        return _whole(_loaded(self.source))

    def __call__(self, records: list[Record]) -> int:
        """Ask, write, and say how many records are done."""
        if self.manifest.budget is not None:
            # also after memory ran out in an earlier block: what a block gives must not depend on those before it
            self.model.budget = self.manifest.budget  # type: ignore[attr-defined]
        answers = self.model.answer(records)
        refuse_unsound(answers, self.manifest.access, model=self.manifest.name)
        if answers.records != tuple(record.digest for record in records):
            raise ModelError(
                f"Model {self.manifest.name!r} did not answer the records it was asked about, in their order.",
                do="This is a fault of the code that asks the model (an adapter, or code of your own).",
                code="answers_out_of_order",
            )
        write_shard(self.folder, self.manifest.address, answers, double=self.manifest.double)
        return len(records)


def _filled(scribe: _Scribe, corpus: Corpus, backend: Backend, progress: Progress | None) -> AnswerStore:
    """The store, after all blocks that were missing have been asked."""
    with filling(scribe.folder):
        scribe = replace(scribe, manifest=_settled(scribe))
        digests: Digests = np.fromiter((bytes.fromhex(record.digest) for record in corpus), dtype="S16")
        missing, distinct = _unanswered(digests, AnswerStore.open(scribe.folder))
        wanted = int(missing.sum())
        tell = progress or (lambda done, total: None)
        tell(distinct - wanted, distinct)
        done, failures = 0, list[Failure]()
        todo = blocks(compress(corpus, missing), scribe.manifest.block)
        for outcome in backend.map(scribe, todo, threads=scribe.manifest.threads):
            if isinstance(outcome, Failure):
                failures.append(outcome)
                if not done and len(failures) == ENOUGH:
                    break
            else:
                done += outcome.value
                tell(distinct - wanted + done, distinct)
    if failures:
        raise _failed(failures, scribe.manifest.name, done, wanted) from failures[0].error
    return AnswerStore.open(scribe.folder)


def _settled(scribe: _Scribe) -> Manifest:
    """The manifest that is already there, or this one, written before anything is asked."""
    if not (scribe.folder / MANIFEST).exists():
        scribe.manifest.write(scribe.folder)
        return scribe.manifest
    there = Manifest.read(scribe.folder)
    if (there.address, there.access) != (scribe.manifest.address, scribe.manifest.access):
        raise StoreError(
            f"The answer store '{scribe.folder}' is not of model {scribe.manifest.name!r} as it is now.",
            do="Delete that folder, and the model will be asked again.",
            code="store_of_another_model",
        )
    return there


def _unanswered(digests: Digests, store: AnswerStore) -> tuple[NDArray[np.bool_], int]:
    """Which records are to be asked, each content once; and how many different ones there are."""
    distinct, first = np.unique(digests, return_index=True)
    missing = np.zeros(len(digests), dtype=np.bool_)
    missing[first[~store.has(distinct)]] = True
    return missing, len(distinct)


def _failed(failures: list[Failure], name: str, done: int, wanted: int) -> ModelError:
    """All failures in one error; what they say in common is said once."""
    errors = [failure.error for failure in failures]
    said = dict.fromkeys(e.found if isinstance(e, RecollectError) else f"{type(e).__name__}: {e}" for e in errors)
    shown = " ".join(list(said)[:3]) + (f" (and {len(said) - 3} other reasons)" if len(said) > 3 else "")
    remedy = next((e.do for e in errors if isinstance(e, RecollectError) and e.do), "")
    kept = f"The answers to {done} of {wanted} records were kept: run the same again, and only the others are asked."
    error = ModelError(
        f"Model {name!r} could not be asked about {wanted - done} of {wanted} records. {shown}",
        do=f"{remedy} {kept}".strip(),
        code="scoring_failed",
    )
    error.add_note(failures[0].traceback)
    return error


def _loaded(source: Source) -> Model:
    """The model itself."""
    if isinstance(source, str):
        return load_model(source)
    return source if isinstance(source, Model) else source()


def _whole(model: Model) -> Model:
    """The model behind a limited one."""
    return model.model if isinstance(model, Limited) else model
