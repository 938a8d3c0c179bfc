"""Seq2seq models: every ordinary token of a target predicted once, given its source and the target before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from recollect.corpora.record import Record
from recollect.errors import CorpusError, ModelError
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.hugging_face.autoregression import (
    AutoregressivePass,
    AutoregressiveScorer,
    Inputs,
    build_autoregressive_answers,
)
from recollect.models.hugging_face.batches import Indices, TokenBudget, pad_batch
from recollect.models.loading.pretrained import Pretrained
from recollect.models.model import Kind, Question
from recollect.models.stepping.tree_stepper import TreeStepper
from recollect.models.tokens.token_spelling import get_spelling
from recollect.models.tokens.tokenization import TextEncoder
from recollect.models.tokens.windows import get_context_length


class Seq2Seq:
    """A Hugging Face encoder–decoder.

    The source is read as the tokenizer prepares it. The target is read after the decoder's start token and the
    tokens that the tokenizer puts before a target; none of these, nor the end token, is counted.
    """

    kind: Kind = "seq2seq"
    access = Access.FULL

    def __init__(self, pretrained: Pretrained, question: Question) -> None:
        """Make a loaded model askable.

        Args:
            pretrained: The model with its tokenizer.
            question: The scoring options; only the precision matters here, because a source cannot be cut.

        Raises:
            ModelError: The model does not say with which token its decoder starts.
        """
        self.name, self.digest, self.question = pretrained.name, pretrained.digest, question
        self.revision = pretrained.revision
        network, tokenizer = pretrained.network, pretrained.tokenizer
        self.tokenizer = tokenizer
        self._network, self._device = network, network.device
        self._sources, self._targets = TextEncoder(tokenizer), TextEncoder(tokenizer, target=True)
        self._start = np.array([_get_decoder_start(network, self.name), *self._targets.prefix_ids], dtype=np.int64)
        self._longest = get_context_length(network)
        self._padding: int = tokenizer.pad_token_id or 0
        source = {"input_ids": torch.tensor([[0, 1]], device=self._device)}
        self._passes = AutoregressiveScorer(
            network, question, name=self.name, padding=self._padding, encoder_inputs=source
        )

    @property
    def batches(self) -> TokenBudget:
        """How tokens are batched."""
        return self._passes.budget

    @property
    def budget(self) -> int:
        """How many tokens are read at once."""
        return self._passes.budget.tokens

    @budget.setter
    def budget(self, tokens: int) -> None:
        self._passes.budget.tokens = tokens

    def answer(self, records: Sequence[Record]) -> Answers:
        """One row per token of the target, in its order.

        Raises:
            CorpusError: A record is not a pair, or its source is empty and nothing is put around it.
            ModelError: A source or a target is longer than the model reads.
        """
        distinct = {record.digest: record for record in records}
        pairs = [_get_pair(record) for record in distinct.values()]
        before, after = self._sources.prefix_ids, self._sources.suffix_ids
        sources = [
            np.concatenate([before, source.ids, after]).astype(np.int64)
            for source in self._sources([source for source, _ in pairs])
        ]
        targets = self._targets([target for _, target in pairs])
        passes = [
            AutoregressivePass(input_ids=np.concatenate([self._start, target.ids[:-1]]), target_ids=target.ids)
            for target in targets
        ]
        for record, source, each in zip(distinct.values(), sources, passes, strict=True):
            self._refuse_unreadable(record, "source", len(source))
            self._refuse_unreadable(record, "target", len(each.input_ids))
        scored = [i for i, each in enumerate(passes) if len(each.target_ids)]

        def beside(batch: Indices) -> Inputs:
            ids, mask = pad_batch([sources[scored[i]] for i in batch], self._padding)
            return {"input_ids": ids.to(self._device), "attention_mask": mask.to(self._device)}

        numbers = self._passes.score_passes(
            [passes[i] for i in scored],
            encoder_inputs=beside,
            costs=[2 * max(len(sources[i]), len(passes[i].input_ids)) for i in scored],
        )
        return build_autoregressive_answers(tuple(distinct), targets, numbers)

    def stepper(self, *, memory: int | None = None) -> TreeStepper:
        """The model queried token by token, keeping at most so many bytes of what it remembers between steps."""
        before, after = self._sources.prefix_ids, self._sources.suffix_ids
        return TreeStepper(
            self._network,
            lambda target: [*self._start, *self._targets([target])[0].ids],
            encode_source=lambda source: [*before, *self._sources([source])[0].ids, *after],
            spelling=lambda: get_spelling(self.tokenizer),
            longest=self._longest,
            memory=memory,
        )

    def _refuse_unreadable(self, record: Record, piece: str, size: int) -> None:
        """Refuse what the model cannot read at once, or at all."""
        if not size:
            raise CorpusError(
                f"The {piece} of record {record.id!r} is empty.", do="Leave the record out.", code="empty_text"
            )
        if self._longest is not None and size > self._longest:
            raise ModelError(
                f"The {piece} of record {record.id!r} has {size} tokens; "
                f"the model {self.name!r} reads at most {self._longest}.",
                do="Leave the record out or cut it: what a part of a pair shows is not what the pair shows.",
                code="text_too_long",
            )


def _get_pair(record: Record) -> tuple[str, str]:
    """Source and target of a record that a seq2seq model reads."""
    if record.source is None or record.target is None:
        raise CorpusError(
            f"Record {record.id!r} is no pair.",
            do="A seq2seq model reads a source and a target.",
            code="record_without_pair",
        )
    return record.source, record.target


def _get_decoder_start(network: Any, name: str) -> int:
    """The token that the decoder of a seq2seq model reads first."""
    for config in (network.config, getattr(network, "generation_config", None)):
        start = getattr(config, "decoder_start_token_id", None)
        if start is not None:
            return int(start)
    raise ModelError(
        f"The model {name!r} does not define the start token of its decoder.",
        do="Put decoder_start_token_id into its config.json.",
        code="no_decoder_start",
    )
