"""A check before training by others' loops: does each planted secret reach the loss, as batches really are made?"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.manifest import Canaries
from recollect.errors import CorpusError, PlanError
from recollect.recipes.sequences import IGNORED

BATCH = 16
"""Examples that are collated at once."""


@dataclass(frozen=True, kw_only=True)
class TrainedSecret:
    """What becomes of one planted secret."""

    secret: str
    """Its id."""
    planted: int
    trained: int
    """Of how many copies the loss is computed on all that is secret."""
    read: int
    """How many whole copies the model reads, trained on or not."""


def check_trained_secrets(
    canaries: Canaries, dataset: Any, collate: Callable[[list[Any]], Any], tokenizer: Any
) -> list[TrainedSecret]:
    """What of each planted secret is left after chat template, truncation, packing and label mask.

    Args:
        canaries: What was planted.
        dataset: The prepared training set of a Trainer.
        collate: What makes a batch of its examples, with `input_ids` and `labels`.
        tokenizer: Turns tokens into text again.

    Raises:
        CorpusError: A secret would never be trained on.
        PlanError: The training set has no length, so that it cannot be looked through.
    """
    found = [TrainedSecret(secret=each.id, planted=each.planted, trained=0, read=0) for each in canaries.planted]
    known = [len(parse_format(each.format).known_prefix) for each in canaries.planted]
    for ids, labels in _iter_examples(dataset, collate):
        row = _Row(ids, labels, tokenizer)
        for i, canary in enumerate(canaries.planted):
            if canary.text in row.text:
                places = [match.start() for match in re.finditer(re.escape(canary.text), row.text)]
                learnt = sum(row.is_learnt(at + known[i], at + len(canary.text)) for at in places)
                found[i] = replace(found[i], trained=found[i].trained + learnt, read=found[i].read + len(places))
    lost = [each for each in found if not each.trained]
    if lost:
        raise _build_error(lost, len(found))
    return found


def _iter_examples(dataset: Any, collate: Callable[[list[Any]], Any]) -> Iterator[tuple[list[int], list[int] | None]]:
    """The tokens and labels of every example, as a batch has them."""
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise PlanError(
            "The training set is a stream, so whether planted secrets survive its preparation cannot be checked.",
            do="Give a data set with a length, or follow without canaries.",
            code="stream_of_examples",
        )
    for begin in range(0, len(dataset), BATCH):
        batch = collate([dataset[i] for i in range(begin, min(begin + BATCH, len(dataset)))])
        labels = batch.get("labels")
        for i, ids in enumerate(batch["input_ids"].tolist()):
            yield ids, None if labels is None else labels[i].tolist()


class _Row:
    """One row of a batch as text."""

    def __init__(self, ids: list[int], labels: list[int] | None, tokenizer: Any) -> None:
        self._ids, self._labels, self._tokenizer = ids, labels, tokenizer
        self.text = self._spell(len(ids))

    def is_learnt(self, begin: int, end: int) -> bool:
        """Whether the loss is computed on all tokens of these characters; the first of a row is never predicted."""
        first = bisect_right(range(len(self._ids)), begin, key=lambda size: len(self._spell(size))) - 1
        last = bisect_left(range(len(self._ids) + 1), end, key=lambda size: len(self._spell(size)))
        labels = self._ids if self._labels is None else self._labels
        return first > 0 and all(label != IGNORED for label in labels[first:last])

    def _spell(self, size: int) -> str:
        """The text of the first so many tokens."""
        spelled: str = self._tokenizer.decode(self._ids[:size], clean_up_tokenization_spaces=False)
        return spelled


def _build_error(lost: Sequence[TrainedSecret], total: int) -> CorpusError:
    """Which secrets are lost, where, and what to do."""
    masked = [each for each in lost if each.read]
    shown = ", ".join(each.secret for each in lost[:5]) + (" …" if len(lost) > 5 else "")
    where = (
        f"{len(masked)} of them are read but not trained on: the label mask hides them."
        if masked
        else "They are not whole in the prepared examples: cut off by the length limit, split by packing, or not there."
    )
    return CorpusError(
        f"{len(lost)} of {total} planted secrets would never be trained on ({shown}). {where}",
        do="Raise max_length (or the length to which you cut), plant shorter records or into the assistant's turns, "
        "pack without splitting, or give the manifest of this training set.",
        code="secrets_not_trained_on",
    )
