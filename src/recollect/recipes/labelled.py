"""Training sequences with an answer of another kind: pairs of texts, texts with a class, arrays with a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from recollect.recipes.sequences import IGNORED, Batch, Draws, Integers, Places, Tokens, rows_of


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Source texts and the target texts to be predicted from them."""

    sources: Tokens
    targets: Tokens
    """Each begins with the symbol that starts the decoder."""
    users: Integers
    padding: int

    @property
    def lengths(self) -> Integers:
        """Of source and target together: both cost time."""
        return self.sources.lengths + self.targets.lengths

    def batch(self, drawn: Places, draws: Draws) -> Batch:
        """These pairs."""
        source, read = rows_of(
            self.sources.flat, self.sources.offsets[drawn], self.sources.lengths[drawn], padding=self.padding
        )
        target, filled = rows_of(
            self.targets.flat, self.targets.offsets[drawn], self.targets.lengths[drawn], padding=self.padding
        )
        inputs = {
            "input_ids": torch.from_numpy(source),
            "attention_mask": torch.from_numpy(read.astype(np.int64)),
            "decoder_input_ids": torch.from_numpy(np.ascontiguousarray(target[:, :-1])),
        }
        wanted = np.where(filled[:, 1:], target[:, 1:], IGNORED)
        return Batch(inputs=inputs, targets=torch.from_numpy(wanted), symbols=int(filled[:, 1:].sum()))


@dataclass(frozen=True, kw_only=True)
class LabelledTexts:
    """Texts and their classes."""

    tokens: Tokens
    classes: Places
    users: Integers
    padding: int

    @property
    def lengths(self) -> Integers:
        """How many symbols each text has."""
        return self.tokens.lengths

    def batch(self, drawn: Places, draws: Draws) -> Batch:
        """These texts."""
        symbols, read = rows_of(
            self.tokens.flat, self.tokens.offsets[drawn], self.tokens.lengths[drawn], padding=self.padding
        )
        inputs = {"input_ids": torch.from_numpy(symbols), "attention_mask": torch.from_numpy(read.astype(np.int64))}
        return Batch(inputs=inputs, targets=torch.from_numpy(self.classes[drawn]), symbols=len(drawn))


@dataclass(frozen=True, kw_only=True)
class LabelledArrays:
    """Arrays and their classes; held as they came, standardised batch by batch."""

    arrays: NDArray[Any]
    classes: Places
    users: Integers
    mean: float
    std: float

    @property
    def lengths(self) -> Integers:
        """All alike."""
        return np.ones(len(self.classes), dtype=np.int32)

    def batch(self, drawn: Places, draws: Draws) -> Batch:
        """These arrays."""
        values = self.arrays[drawn].astype(np.float32)
        if self.arrays.dtype == np.uint8:
            values /= np.float32(255)
        values = (values - np.float32(self.mean)) / np.float32(self.std)
        return Batch(
            inputs={"pixel_values": torch.from_numpy(values)},
            targets=torch.from_numpy(self.classes[drawn]),
            symbols=len(drawn),
        )
