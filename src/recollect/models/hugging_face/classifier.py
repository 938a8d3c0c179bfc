"""Classifiers of texts and of arrays: one token per record, its label; and the logits, because classes are few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recollect.checks import suggest_name
from recollect.corpora.record import Record
from recollect.errors import CorpusError, ModelError
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.hugging_face.array_inputs import ArrayReader, ArrayScaling
from recollect.models.hugging_face.batches import Indices, TokenBudget, is_out_of_memory, pad_batch
from recollect.models.hugging_face.token_scores import score_tokens
from recollect.models.loading.pretrained import Pretrained
from recollect.models.model import Kind, Question
from recollect.models.tokens.tokenization import TextEncoder, get_tokenised_text
from recollect.models.tokens.windows import get_context_length

MAX_VALUES = 2**20
"""Numbers in one batch of arrays: some 1,300 images of 28×28, some 7 of 224×224 in colour."""


class Classifier:
    """A Hugging Face model that gives a text or an array one of a few labels."""

    kind: Kind = "classifier"
    access = Access.PROBABILITIES

    def __init__(self, pretrained: Pretrained, question: Question) -> None:
        """Make a loaded model askable.

        Args:
            pretrained: With a tokenizer it reads texts, without one arrays.
            question: The scoring options; only the precision matters here.

        Raises:
            ModelError: The model does not choose one of several labels.
        """
        self.name, self.digest, self.question = pretrained.name, pretrained.digest, question
        self.revision = pretrained.revision
        self._labels = _ClassLabels(pretrained)
        self._inputs: _ClassifierInputs = (
            _ClassifiedArrays(pretrained) if pretrained.tokenizer is None else _ClassifiedTexts(pretrained)
        )

    @property
    def batches(self) -> TokenBudget | None:
        """How texts are batched; None for arrays: batches of several shapes could not be told apart."""
        return self._inputs.budget if isinstance(self._inputs, _ClassifiedTexts) else None

    @property
    def budget(self) -> int:
        """How much is read at once: tokens of texts, values of arrays."""
        return self._inputs.budget.tokens

    @budget.setter
    def budget(self, tokens: int) -> None:
        self._inputs.budget.tokens = tokens

    def answer(self, records: Sequence[Record]) -> Answers:
        """One row per record: its label.

        Raises:
            CorpusError: A record has no label, one that the model does not know, or an input that it cannot read.
        """
        distinct = list({record.digest: record for record in records}.values())
        labels = torch.tensor([self._labels.get_index(record) for record in distinct], dtype=torch.int64)
        logits = self._inputs.compute_logits(distinct, len(self._labels))
        scores = score_tokens(logits.double(), labels)
        rows, kind = len(distinct), logits.numpy().dtype
        zeros = np.zeros(rows, dtype=np.int32)
        return Answers(
            records=tuple(record.digest for record in distinct),
            offsets=np.arange(rows + 1, dtype=np.int64),
            pattern=zeros,
            position=zeros,
            start=zeros,
            end=zeros,
            known=np.ones(rows, dtype=np.bool_),
            rank=scores.rank,
            logprob=scores.logprob.astype(kind),
            entropy=scores.entropy.astype(kind),
            logprob_std=scores.logprob_std.astype(kind),
            logits=logits.numpy(),
        )


class _ClassLabels:
    """The labels that a model knows."""

    def __init__(self, pretrained: Pretrained) -> None:
        config = pretrained.network.config
        self._count = int(config.num_labels)
        self._numbers: dict[str, int] = config.label2id
        self._numeric = any(name.isdecimal() for name in self._numbers)
        problem = getattr(config, "problem_type", None)
        if self._count < 2 or problem in {"regression", "multi_label_classification"}:
            raise ModelError(
                f"The model {pretrained.name!r} does not choose one of several labels "
                f"({problem or f'it has {self._count} output'}).",
                do="Give a classifier with two labels or more of which exactly one is right.",
                code="not_a_classifier",
            )

    def __len__(self) -> int:
        return self._count

    def get_index(self, record: Record) -> int:
        """Which output stands for the record's label: by name or, where no name is a number, by number from 0."""
        label, name = record.label, str(record.label)
        number = self._numbers.get(name, -1)
        if number < 0 and name.isdecimal() and not self._numeric:
            number = int(name)
        if 0 <= number < self._count:
            return number
        has = "no label" if label is None else f"the label {label!r}"
        known = ", ".join(list(self._numbers)[:10]) + (", …" if len(self._numbers) > 10 else "")
        by_number = "" if self._numeric else f", or numbers from 0 to {self._count - 1}"
        raise CorpusError(
            f"Record {record.id!r} has {has}, which the model does not know.",
            do=f"{suggest_name(name, self._numbers)}It knows {known}{by_number}.",
            code="unknown_label",
        )


class _ClassifierInputs(Protocol):
    """How records become logits."""

    budget: TokenBudget

    def compute_logits(self, records: Sequence[Record], classes: int) -> Tensor:
        """One row per record, on the processor, in single or double precision."""


class _ClassifiedArrays:
    """Arrays, batched with others of their shape."""

    def __init__(self, pretrained: Pretrained) -> None:
        self._network = pretrained.network
        scaling = ArrayScaling.of(pretrained.card, pretrained.preprocessing, pretrained.name)
        self._read = ArrayReader.of(pretrained.network.config, scaling)
        self._main = self._network.main_input_name
        self.budget = TokenBudget(MAX_VALUES)

    def compute_logits(self, records: Sequence[Record], classes: int) -> Tensor:
        """One row per record."""
        found = _allocate_logits(len(records), classes, self._network)
        shapes: dict[tuple[int, ...], list[int]] = {}
        for index, record in enumerate(records):
            shapes.setdefault(() if record.array is None else record.array.shape, []).append(index)
        for shape, indices in shapes.items():
            sizes = np.full(len(indices), max(1, math.prod(shape)), dtype=np.int64)
            run = partial(self._run_batch, [records[index] for index in indices])
            for batch, rows in self.budget.map_batches(sizes, run):
                found[torch.tensor(indices)[torch.from_numpy(batch)]] = rows
        return found

    @torch.inference_mode()
    def _run_batch(self, records: Sequence[Record], batch: Indices) -> Tensor:
        """The logits of some records of one shape."""
        values = torch.from_numpy(np.stack([self._read(records[i]) for i in batch]))
        placed = values.to(self._network.device, self._network.dtype)
        try:
            return _to_kept_logits(self._network(**{self._main: placed}).logits)
        except (RuntimeError, ValueError) as error:
            if is_out_of_memory(error):
                raise
            raise CorpusError(
                f"The model cannot read the array of record {records[int(batch[0])].id!r}: {error}",
                do="Give arrays of the shape the model was trained on, channels last.",
                code="array_unreadable",
            ) from error


class _ClassifiedTexts:
    """Texts, whole: a label is about all of a text."""

    def __init__(self, pretrained: Pretrained) -> None:
        self._network, self._name = pretrained.network, pretrained.name
        self._encode = TextEncoder(pretrained.tokenizer)
        self._longest = get_context_length(pretrained.network, pretrained.tokenizer)
        self._padding: int | None = self._network.config.get_text_config().pad_token_id
        self.budget = TokenBudget.of(pretrained.network)

    def compute_logits(self, records: Sequence[Record], classes: int) -> Tensor:
        """One row per record."""
        found = _allocate_logits(len(records), classes, self._network)
        inputs = self._build_inputs(records)
        for batch, rows in self.budget.map_batches(
            [len(ids) for ids in inputs], lambda batch: self._run_batch(inputs, batch).numpy()
        ):
            found[torch.from_numpy(batch)] = torch.from_numpy(rows)
        return found

    def _build_inputs(self, records: Sequence[Record]) -> list[NDArray[np.int64]]:
        """The tokens of each text, with the special ones around it."""
        before, after = self._encode.prefix_ids, self._encode.suffix_ids
        encoded = self._encode([get_tokenised_text(record) for record in records])
        inputs = [np.concatenate([before, text.ids, after]).astype(np.int64) for text in encoded]
        for record, ids in zip(records, inputs, strict=True):
            if not len(ids):
                raise CorpusError(f"The text of record {record.id!r} is empty.", do="Remove it.", code="empty_text")
            if self._longest is not None and len(ids) > self._longest:
                raise CorpusError(
                    f"The text of record {record.id!r} has {len(ids)} tokens; "
                    f"the model {self._name!r} reads at most {self._longest}.",
                    do="Cut long texts first (--split windows): a label given to a part of a text may be another one.",
                    code="text_too_long",
                )
        return inputs

    @torch.inference_mode()
    def _run_batch(self, inputs: list[NDArray[np.int64]], batch: Indices) -> Tensor:
        """The logits of some texts, padded on the right."""
        if self._padding is None:
            # some models then take the last token as the end of the text: no padding, one by one
            return torch.cat([self._forward(torch.from_numpy(inputs[i])[None], None) for i in batch])
        return self._forward(*pad_batch([inputs[i] for i in batch], self._padding))

    def _forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """The logits of texts that are ready."""
        device = self._network.device
        inputs: dict[str, Any] = {"input_ids": ids.to(device)}
        if mask is not None:
            inputs["attention_mask"] = mask.to(device)
        return _to_kept_logits(self._network(**inputs).logits)


def _allocate_logits(rows: int, classes: int, network: Any) -> Tensor:
    """Room for the logits of a classifier, in double precision only if the model computes in it."""
    return torch.empty(rows, classes, dtype=torch.float64 if network.dtype == torch.float64 else torch.float32)


def _to_kept_logits(logits: Tensor) -> Tensor:
    """The logits of a classifier as they are kept."""
    return logits.cpu() if logits.dtype == torch.float64 else logits.float().cpu()
