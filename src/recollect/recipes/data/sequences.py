"""Training sequences: a corpus as compact arrays of tokens, and batches cut from them.

Every kind of model is trained on the same shape: inputs, and targets that are where the model's logits are.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Integers = NDArray[np.int32]
Indices = NDArray[np.int64]
RngFactory = Callable[[], np.random.Generator]
"""Makes the random stream of a batch: called only where something is random, because making one takes time."""
IGNORED = -100
"""The target that is where nothing is predicted."""
BLOCK_SIZE = 1000


@dataclass(frozen=True, kw_only=True)
class SequenceBatch:
    """The inputs of a model, and its targets."""

    inputs: dict[str, Tensor]
    """Arguments of the model, each with one row per training sequence."""
    targets: Tensor
    """One class per row, or one token per position; `IGNORED` where nothing is predicted."""
    token_count: int
    """How many tokens are predicted."""

    def to(self, device: torch.device) -> SequenceBatch:
        """The same batch on a device."""
        inputs = {name: value.to(device, non_blocking=True) for name, value in self.inputs.items()}
        return SequenceBatch(
            inputs=inputs, targets=self.targets.to(device, non_blocking=True), token_count=self.token_count
        )

    def split(self, pieces: int) -> Iterator[SequenceBatch]:
        """The same rows in at most so many smaller batches."""
        if pieces == 1:
            yield self
            return
        rows = -(-len(self.targets) // pieces)
        for begin in range(0, len(self.targets), rows):
            cut = slice(begin, begin + rows)
            inputs = {name: value[cut] for name, value in self.inputs.items()}
            targets = self.targets[cut]
            yield SequenceBatch(inputs=inputs, targets=targets, token_count=int((targets != IGNORED).sum()))


class TrainingSequences(Protocol):
    """Training sequences, numbered from zero."""

    @property
    def lengths(self) -> Integers:
        """How many tokens each has; batches are made of similar ones."""

    @property
    def users(self) -> Integers:
        """Whose each is, numbered in order of appearance; −1 where several people's texts are joined."""

    def build_batch(self, indices: Indices, make_rng: RngFactory) -> SequenceBatch:
        """These sequences as one batch; only masking is random."""


@dataclass(frozen=True, kw_only=True)
class SpecialTokens:
    """The special tokens around a text."""

    padding: int
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TokenTable:
    """Texts as tokens, one after another: `flat[offsets[i]:offsets[i + 1]]` is text i."""

    flat: Integers
    offsets: Indices
    trained: NDArray[np.bool_] | None = None
    """Which tokens are trained on, one flag per token; all if None."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Integers:
        """How many tokens each text has."""
        return np.diff(self.offsets).astype(np.int32)


def tokenise_for_training(
    texts: Iterable[str], tokenizer: Any, special_tokens: SpecialTokens, *, max_tokens: int | None = None
) -> TokenTable:
    """Texts as tokens of training sequences, streamed: only four bytes per token are held.

    Args:
        texts: The texts, read once. What they spell out is text: a written "[SEP]" is no mark.
        tokenizer: A fast tokenizer of the transformers library.
        special_tokens: What to put before and after each text.
        max_tokens: Keep only so many tokens of a text, not counting the marks.
    """
    flat, lengths, source = array("i"), [0], iter(texts)
    while block := list(islice(source, BLOCK_SIZE)):
        found = tokenizer(
            block, add_special_tokens=False, split_special_tokens=True, return_attention_mask=False, verbose=False
        )
        for ids in found["input_ids"]:
            kept = [*special_tokens.before, *ids[:max_tokens], *special_tokens.after]
            flat.extend(kept)
            lengths.append(len(kept))
    return TokenTable(flat=np.frombuffer(flat, dtype=np.int32), offsets=np.cumsum(lengths, dtype=np.int64))


def build_sequence_rows(
    flat: Integers, starts: Indices, lengths: Integers, *, padding: int
) -> tuple[Indices, NDArray[np.bool_]]:
    """Pieces of flat sequences as the rows of a padded table, and which cells are filled."""
    columns = np.arange(int(lengths.max(initial=0)))
    filled = columns < lengths[:, None]
    indices = np.where(filled, starts[:, None] + columns, 0)
    return np.where(filled, flat[indices], padding).astype(np.int64), filled
