"""Corpora as training sequences: texts one by one, in windows, as streams or masked; pairs; inputs with a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from recollect.recipes import recipe
from recollect.recipes.sequences import IGNORED, Batch, Draws, Integers, Marks, Places, Tokens, rows_of


@dataclass(frozen=True, kw_only=True)
class Running:
    """Pieces of text for models that read from left to right: each symbol is predicted from those before it."""

    flat: Integers
    starts: Places
    lengths: Integers
    """How many symbols each piece predicts: one fewer than it has."""
    users: Integers
    marks: Marks

    @property
    def never(self) -> tuple[int, ...]:
        """Symbols that need no prediction: those before a text, unless the same symbol also ends one."""
        return tuple(symbol for symbol in self.marks.before if symbol not in self.marks.after)

    def batch(self, drawn: Places, draws: Draws) -> Batch:
        """These pieces: inputs are all symbols but the last, targets all but the first."""
        symbols, filled = rows_of(self.flat, self.starts[drawn], self.lengths[drawn] + 1, padding=self.marks.padding)
        # where texts are joined, that one begins after another ended is no news: it would flatter the loss
        wanted = filled[:, 1:] & ~np.isin(symbols[:, 1:], self.never)
        targets = np.where(wanted, symbols[:, 1:], IGNORED)
        inputs = {"input_ids": torch.from_numpy(np.ascontiguousarray(symbols[:, :-1]))}
        return Batch(inputs=inputs, targets=torch.from_numpy(targets), symbols=int(wanted.sum()))


def pieces(tokens: Tokens, counts: Integers, *, length: int, split: bool) -> tuple[Places, Places, Integers]:
    """Texts in pieces of at most `length`: each piece's text, where it begins, and how long it is.

    Args:
        tokens: The texts.
        counts: How many symbols of each text are shared out among its pieces.
        length: How many a piece gets at most.
        split: Whether what is longer is split into several pieces, or else cut off.
    """
    needed = -(-counts // length) if split else np.minimum(counts, 1)
    text = np.repeat(np.arange(len(tokens)), needed)
    before = (np.arange(len(text)) - np.repeat(np.cumsum(needed) - needed, needed)) * length
    return text, tokens.offsets[text] + before, np.minimum(counts[text] - before, length).astype(np.int32)


def one_by_one(tokens: Tokens, users: Integers, marks: Marks, *, length: int, split: bool = True) -> Running:
    """Each text by itself; longer ones are split so that every symbol is predicted exactly once, or cut off."""
    text, starts, lengths = pieces(tokens, np.maximum(tokens.lengths - 1, 0), length=length, split=split)
    return Running(flat=tokens.flat, starts=starts, lengths=lengths, users=users[text], marks=marks)


def windows(tokens: Tokens, marks: Marks, *, length: int) -> Running:
    """All texts joined and cut into windows of equal length."""
    starts = np.arange(0, len(tokens.flat) - 1, length, dtype=np.int64)
    lengths = np.minimum(len(tokens.flat) - 1 - starts, length).astype(np.int32)
    return Running(flat=tokens.flat, starts=starts, lengths=lengths, users=_nobody(starts), marks=marks)


def streams(tokens: Tokens, marks: Marks, *, length: int, rows: int) -> Running:
    """All texts joined, as so many parallel streams: sequence `step × rows + row` goes on where the last left off.

    Fewer than `rows` symbols at the very end are left out, so that all streams are equally long.
    """
    each = (len(tokens.flat) - 1) // rows
    begins = np.arange(0, each, length, dtype=np.int64)
    starts = (begins[:, None] + each * np.arange(rows, dtype=np.int64)).ravel()
    lengths = np.repeat(np.minimum(each - begins, length), rows).astype(np.int32)
    return Running(flat=tokens.flat, starts=starts, lengths=lengths, users=_nobody(starts), marks=marks)


def _nobody(starts: Places) -> Integers:
    """The users of sequences that hold several people's texts."""
    return np.full(len(starts), -1, dtype=np.int32)


@dataclass(frozen=True, kw_only=True)
class Masked:
    """Pieces of text of which some symbols are hidden and must be found from all the others (BERT's 80/10/10)."""

    flat: Integers
    starts: Places
    lengths: Integers
    users: Integers
    marks: Marks
    mask: int
    """The symbol that hides another."""
    share: float
    ordinary: Places
    """The symbols that may stand in for another: all but the special ones."""

    def batch(self, drawn: Places, draws: Draws) -> Batch:
        """These pieces between the first and last symbol, freshly masked."""
        lengths = self.lengths[drawn]
        inner, filled = rows_of(self.flat, self.starts[drawn], lengths, padding=self.marks.padding)
        rng = draws()
        chosen = filled & (rng.random(inner.shape) < self.share)
        fate = rng.random(inner.shape)
        shown = np.where(chosen & (fate < 0.8), self.mask, inner)
        shown = np.where(chosen & (fate >= 0.9), rng.choice(self.ordinary, inner.shape), shown)
        before, after = len(self.marks.before), len(self.marks.after)
        table = np.full((len(drawn), before + inner.shape[1] + after), self.marks.padding, dtype=np.int64)
        table[:, :before], table[:, before : before + inner.shape[1]] = self.marks.before, shown
        for place, symbol in enumerate(self.marks.after):
            table[np.arange(len(drawn)), before + lengths + place] = symbol
        targets = np.full(table.shape, IGNORED, dtype=np.int64)
        targets[:, before : before + inner.shape[1]] = np.where(chosen, inner, IGNORED)
        read = np.arange(table.shape[1]) < lengths[:, None] + before + after
        inputs = {"input_ids": torch.from_numpy(table), "attention_mask": torch.from_numpy(read.astype(np.int64))}
        return Batch(inputs=inputs, targets=torch.from_numpy(targets), symbols=int(chosen.sum()))


def masked(tokens: Tokens, users: Integers, marks: Marks, *, tokenizer: Any, settings: recipe.Sequences) -> Masked:
    """Each text by itself, in pieces of at most so many symbols, to be masked anew in every batch."""
    split = settings.long == "split"
    text, starts, lengths = pieces(tokens, tokens.lengths, length=settings.length, split=split)
    return Masked(
        flat=tokens.flat,
        starts=starts,
        lengths=lengths,
        users=users[text],
        marks=marks,
        mask=tokenizer.mask_token_id,
        share=settings.masked,
        ordinary=np.setdiff1d(np.arange(len(tokenizer)), tokenizer.all_special_ids),
    )


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
