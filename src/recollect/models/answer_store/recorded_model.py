"""`recorded:DIR`: a model that replays an answer store, so that an audit can run where the model is not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from recollect.corpora.record import Record
from recollect.digests import digest
from recollect.errors import ModelError, StoreError
from recollect.files import hold_lock
from recollect.models.access import Access
from recollect.models.answer_store.manifest import BLOCK_SIZE, MANIFEST, Manifest
from recollect.models.answer_store.shards import pack_shard_digests, write_shard
from recollect.models.answer_store.soundness import refuse_unsound_answers
from recollect.models.answer_store.store import AnswerStore, split_into_store_blocks
from recollect.models.answers import Answers
from recollect.models.model import Kind, Question, build_question_key


@dataclass(frozen=True)
class RecordedModel:
    """A model of which only its answers are here. It cannot be queried step by step."""

    store: AnswerStore

    @property
    def name(self) -> str:
        """How the user names it."""
        return f"recorded:{self.store.folder}"

    @property
    def kind(self) -> Kind:
        """What the model predicts."""
        return self.store.manifest.kind

    @property
    def digest(self) -> str:
        """The digest of the model that was scored."""
        return self.store.manifest.digest

    @property
    def question(self) -> Question:
        """The scoring options that were used."""
        return self.store.manifest.question

    @property
    def access(self) -> Access:
        """What it showed."""
        return self.store.access

    def answer(self, records: Sequence[Record]) -> Answers:
        """What it showed about these records, in their order.

        Raises:
            ModelError: Some of them were never scored.
        """
        self.refuse_unknown(records)
        return self.store.get_answers(records)

    def refuse_unknown(self, records: Iterable[Record]) -> None:
        """Refuse records that are not in the store; answers cannot be computed here.

        Raises:
            ModelError: There are such records; it says how many, and names one.
        """
        record_count, unknown = 0, list[str]()
        for block in split_into_store_blocks(records, BLOCK_SIZE):
            held = self.store.contains(pack_shard_digests([record.digest for record in block]))
            record_count += len(block)
            unknown += [record.id for record, there in zip(block, held, strict=True) if not there]
        if unknown:
            raise ModelError(
                f"{self.name} has no answer to {len(unknown)} of {record_count} records, such as "
                f"the record {unknown[0]!r}.",
                do="Score these records with the model itself (recollect score), or leave them out.",
                code="not_recorded",
            )


def load_recording(folder: Path) -> RecordedModel:
    """The model whose answers are in this folder.

    Raises:
        StoreError: There is no store, or it is damaged.
    """
    return RecordedModel(AnswerStore.open(folder))


def write_recording(
    answers: Iterable[Answers], folder: Path, *, name: str, kind: Kind, access: Access, question: Question | None = None
) -> AnswerStore:
    """Keep answers that were computed elsewhere as a store that `recorded:DIR` replays.

    Read the corpus with `recollect.read_corpus`, score it by whatever means, and make `Answers` whose `records`
    are the digests of the records. Columns that the model does not show are None.

    Args:
        answers: Any number of parts, in the order of the corpus; they are taken one by one.
        folder: A new folder.
        name: Of the model. Two models must not have the same.
        kind: What the model predicts.
        access: What the model showed.
        question: The scoring options that were used, where that is known.

    Raises:
        StoreError: The folder already holds a store.
        ModelError: Some answers contradict themselves or the access.
    """
    question = question or Question()
    manifest = Manifest(
        address=digest(name, kind, build_question_key(question)),
        name=name,
        digest=digest(name),
        kind=kind,
        question=question,
        access=replace(access, steps=False),
        block=BLOCK_SIZE,
    )
    with hold_lock(folder, purpose="filling"):
        if (folder / MANIFEST).exists():
            raise StoreError(
                f"The folder '{folder}' already holds an answer store.", do="Choose a new folder.", code="store_exists"
            )
        for piece in answers:
            refuse_unsound_answers(piece, manifest.access, model=name)
            for records in split_into_store_blocks(piece.records, BLOCK_SIZE):
                write_shard(folder, manifest.address, piece.select(records), double=manifest.is_double)
        # last, so that a store that was refused halfway is none
        manifest.write(folder)
    return AnswerStore.open(folder)
