"""Masked language models: every record read under K mask patterns, the output layer only where something is hidden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from recollect.corpora.record import Record
from recollect.errors import ModelError
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.hugging_face.batches import TokenBudget, pad_batch
from recollect.models.hugging_face.mask_patterns import (
    BEGIN,
    END,
    FIRST,
    LAST,
    PATTERN,
    RECORD,
    Table,
    count_hidden,
    count_patterns,
    draw_hidden,
    plan_masked_reads,
    ragged_arange,
)
from recollect.models.hugging_face.token_scores import TokenScorer, TokenScores
from recollect.models.hugging_face.token_substitutes import Substitutes
from recollect.models.loading.pretrained import Pretrained
from recollect.models.model import Kind, Question
from recollect.models.tokens.tokenization import EncodedText, TextEncoder, get_tokenised_text
from recollect.models.tokens.windows import get_window_width


class Masked:
    """A Hugging Face masked language model."""

    kind: Kind = "masked"
    access = Access.PROBABILITIES

    def __init__(self, pretrained: Pretrained, question: Question) -> None:
        """Make a loaded model askable.

        Args:
            pretrained: The model with its tokenizer.
            question: How many patterns, how much each hides, how long a window is read.

        Raises:
            ModelError: The tokenizer has no token for what is hidden.
        """
        self.name, self.digest, self.question = pretrained.name, pretrained.digest, question
        self.revision = pretrained.revision
        tokenizer = pretrained.tokenizer
        if tokenizer.mask_token_id is None:
            raise ModelError(
                f"The tokenizer of {self.name!r} has no mask token.",
                do="Give the tokenizer that it was trained with.",
                code="no_mask_token",
            )
        self._mask: int = tokenizer.mask_token_id
        self._padding: int = tokenizer.pad_token_id or 0
        self._encode = TextEncoder(tokenizer)
        self._network, self._device = pretrained.network, pretrained.network.device
        probe = torch.tensor([[*self._encode.prefix_ids, self._mask, *self._encode.suffix_ids]], device=self._device)
        self._reader = TokenScorer(pretrained.network, {"input_ids": probe}, question.sampling)
        self._ending = MaskedRowSelector(pretrained.network)
        self._width = self._get_room(
            get_window_width(pretrained.network, question, name=self.name, tokenizer=tokenizer)
        )
        self._budget = TokenBudget.of(
            pretrained.network, vocabulary=0 if self._reader.skips_full_logits else self._reader.vocabulary
        )
        self._substitutes = Substitutes(
            network=pretrained.network,
            tokenizer=tokenizer,
            encode=self._encode,
            budget=TokenBudget.of(pretrained.network, vocabulary=self._reader.vocabulary),
            width=self._width,
        )

    @property
    def batches(self) -> TokenBudget:
        """How tokens are batched."""
        return self._budget

    @property
    def budget(self) -> int:
        """How many tokens are read at once."""
        return self._budget.tokens

    @budget.setter
    def budget(self, tokens: int) -> None:
        self._budget.tokens = tokens

    def answer(self, records: Sequence[Record]) -> Answers:
        """One row per record, pattern and hidden token, in this order.

        Raises:
            CorpusError: A record has no text.
        """
        texts = _MaskedTexts.of(list({record.digest: record for record in records}.values()), self._encode)
        reads = plan_masked_reads(texts.digests, texts.sizes, self._width, self.question)
        rows = _MaskedRows(texts, self.question)
        lengths = reads[:, END] - reads[:, BEGIN] + self._encode.special_token_count
        for batch, found in self._budget.map_batches(
            lengths, lambda batch: self._score_batch(texts, reads[batch]), build=(None, TokenScores)
        ):
            rows.put(reads[batch], *found)
        return rows.build_answers()

    def embed(self, records: Sequence[Record]) -> NDArray[np.float64]:
        """One row per record: the last layer at the first token ([CLS], where the tokenizer has it).

        Of a text that is longer than the model reads, its beginning counts.
        """
        before, after = (
            np.array(marks, dtype=np.int64) for marks in (self._encode.prefix_ids, self._encode.suffix_ids)
        )
        texts = [text.ids[: self._width] for text in self._encode([get_tokenised_text(record) for record in records])]
        read = [np.concatenate([before, ids, after]) for ids in texts]
        points = np.empty((len(read), int(self._network.config.hidden_size)))

        def first(batch: NDArray[np.int64]) -> NDArray[np.float64]:
            ids, mask = (each.to(self._device) for each in pad_batch([read[i] for i in batch], self._padding))
            with torch.inference_mode():
                output = self._network(input_ids=ids, attention_mask=mask, output_hidden_states=True)
            found: NDArray[np.float64] = output.hidden_states[-1][:, 0].double().cpu().numpy()
            return found

        for batch, found in self._budget.map_batches([len(ids) for ids in read], first):
            points[batch] = found
        return points

    def neighbours(self, texts: Sequence[str], count: int) -> list[list[str]]:
        """For each text up to `count` others that differ in one token: the most likely that is not the text's own."""
        return self._substitutes.generate(texts, count)

    def _get_room(self, width: int | None) -> int | None:
        """How many ordinary tokens are read at once, when so many with the special ones are."""
        added = self._encode.special_token_count
        if width is not None and width < added + 2:
            raise ModelError(
                f"A window of {width} tokens leaves no room: the tokenizer of {self.name!r} adds {added}.",
                do=f"Choose a window of {added + 2} or more.",
                code="window_too_short",
            )
        return None if width is None else width - added

    def _score_batch(self, texts: _MaskedTexts, reads: Table) -> tuple[NDArray[np.int64], TokenScores]:
        """The places that are scored in these reads, one read after the other, and their numbers."""
        before, after = self._encode.prefix_ids, self._encode.suffix_ids
        lengths = reads[:, END] - reads[:, BEGIN] + self._encode.special_token_count
        ids = np.full((len(reads), int(lengths.max())), self._padding, dtype=np.int64)
        ids[:, : len(before)] = before
        scored, cells = [], []
        for row, (record, pattern, begin, end, first, last) in zip(ids, reads.tolist(), strict=True):
            positions = draw_hidden(texts.digests[record], int(texts.sizes[record]), pattern, self.question)
            window = row[len(before) : len(before) + end - begin]
            window[:] = texts.get_ids(record)[begin:end]
            window[positions[(positions >= begin) & (positions < end)] - begin] = self._mask
            row[len(before) + end - begin :][: len(after)] = after
            scored.append(positions[first:last])
            cells.append(len(before) + scored[-1] - begin)
        counts = reads[:, LAST] - reads[:, FIRST]
        rows_scored = np.concatenate(cells) + np.repeat(np.arange(len(reads)) * ids.shape[1], counts)
        positions = np.concatenate(scored)
        true_ids = texts.take(texts.encoded.ids, np.repeat(reads[:, RECORD], counts), positions)
        mask = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)
        inputs = {"input_ids": self._to_device(ids), "attention_mask": self._to_device(mask)}
        with self._ending.select_rows(self._to_device(rows_scored)) as rows:
            return positions, self._reader.score(inputs, rows, self._to_device(true_ids))

    def _to_device(self, values: NDArray[np.int64]) -> Tensor:
        """Values on the model's device."""
        return torch.from_numpy(values).to(self._device)


@dataclass(frozen=True)
class _MaskedTexts:
    """The texts of some records as tokens, one after the other."""

    digests: tuple[str, ...]
    sizes: NDArray[np.int64]
    """How many ordinary tokens each text has."""
    encoded: EncodedText
    """All texts as one."""
    starts: NDArray[np.int64]
    """Where each text begins in it."""

    @classmethod
    def of(cls, records: Sequence[Record], encode: TextEncoder) -> _MaskedTexts:
        """The texts of these records."""
        texts = encode([get_tokenised_text(record) for record in records])
        sizes = np.array([len(text) for text in texts], dtype=np.int64)
        return cls(
            tuple(record.digest for record in records), sizes, EncodedText.concatenate(texts), np.cumsum(sizes) - sizes
        )

    def get_ids(self, record: int) -> NDArray[np.int64]:
        """The tokens of one record."""
        return self.encoded.ids[self.starts[record] : self.starts[record] + self.sizes[record]]

    def take(self, column: NDArray[Any], records: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[Any]:
        """What is in a column at these places of these records."""
        found: NDArray[Any] = column[self.starts[records] + positions]
        return found


class _MaskedRows:
    """The rows of an answer, filled in whatever order the batches come."""

    def __init__(self, texts: _MaskedTexts, question: Question) -> None:
        self._texts = texts
        self._hides = np.array([count_hidden(int(size), question) for size in texts.sizes], dtype=np.int64)
        patterns = np.array([count_patterns(int(size), question) for size in texts.sizes], dtype=np.int64)
        self._counts = patterns * self._hides
        self._offsets = np.concatenate([[0], np.cumsum(self._counts)]).astype(np.int64)
        self._position = np.zeros(self._offsets[-1], dtype=np.int32)
        self._numbers = TokenScores.allocate(len(self._position), double=question.precision == "float64")

    def put(self, reads: Table, positions: NDArray[np.int64], scores: TokenScores) -> None:
        """Keep what was found in some reads."""
        counts = reads[:, LAST] - reads[:, FIRST]
        begins = self._offsets[reads[:, RECORD]] + reads[:, PATTERN] * self._hides[reads[:, RECORD]] + reads[:, FIRST]
        rows = np.repeat(begins, counts) + ragged_arange(counts)
        self._position[rows] = positions
        self._numbers.put(rows, scores)

    def build_answers(self) -> Answers:
        """All rows, with where in the text they are."""
        texts = self._texts
        record = np.repeat(np.arange(len(self._counts)), self._counts)
        pattern = ragged_arange(self._counts) // np.repeat(np.maximum(self._hides, 1), self._counts)
        return Answers(
            records=texts.digests,
            offsets=self._offsets,
            pattern=pattern.astype(np.int32),
            position=self._position,
            start=texts.take(texts.encoded.start, record, self._position),
            end=texts.take(texts.encoded.end, record, self._position),
            known=texts.take(texts.encoded.known, record, self._position),
            **vars(self._numbers),
        )


_LAST_ATTENTION = ("attention", "sa_layer_norm")
"""What the module is called after which every place is on its own: in BERT and most of its kin, and in DistilBERT."""

_ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}
"""How far equal logits may be apart, beside the largest of them."""


class MaskedRowSelector:
    """The last module of a network in which places look at each other, if it can be told."""

    def __init__(self, network: Any) -> None:
        """Find it by name, and believe it only if the network then gives the same logits.

        Args:
            network: A Hugging Face model in evaluation mode that reads `input_ids`.
        """
        self._module: nn.Module | None = None
        ids = torch.arange(12, device=network.device).reshape(2, 6) % network.get_input_embeddings().num_embeddings
        inputs, rows = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, ids.new_tensor([1, 4, 8])
        with torch.inference_mode():
            expected = network(**inputs).logits.flatten(0, 1)[rows]
            for name in _LAST_ATTENTION:
                self._module = _find_last_encoder_module(network, name)
                if self._is_equivalent(network, inputs, rows, expected):
                    return
        self._module = None

    @contextmanager
    def select_rows(self, rows: Tensor) -> Iterator[Tensor]:
        """While this lasts, the network gives these rows alone; yields where they are to be found in what it gives.

        Args:
            rows: Places, batch and position counted as one.
        """
        if self._module is None:
            yield rows
            return
        hook = self._module.register_forward_hook(lambda _module, _inputs, output: _select_masked_rows(output, rows))
        try:
            yield torch.arange(len(rows), device=rows.device)
        finally:
            hook.remove()

    def _is_equivalent(self, network: Any, inputs: dict[str, Tensor], rows: Tensor, expected: Tensor) -> bool:
        """Whether the rows come out as they do without this."""
        if self._module is None:
            return False
        try:
            with self.select_rows(rows):
                found = network(**inputs).logits.flatten(0, -2)
        except (RuntimeError, ValueError, TypeError, IndexError):
            return False
        near = _ROUNDING[expected.dtype] * max(1.0, float(expected.abs().max()))
        return found.shape == expected.shape and bool((found - expected).abs().max() < near)


def _find_last_encoder_module(network: nn.Module, name: str) -> nn.Module | None:
    """The last module of that name in the encoder of a masked model."""
    found = [module for path, module in network.named_modules() if path.rpartition(".")[2] == name]
    return found[-1] if found else None


def _select_masked_rows(output: Any, rows: Tensor) -> Any:
    """The output of a masked model's module with these rows only; what it gives beside its states stays."""
    if isinstance(output, Tensor):
        return output.flatten(0, 1)[rows][None]
    return (_select_masked_rows(output[0], rows), *output[1:])
