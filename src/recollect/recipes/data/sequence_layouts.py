"""Corpora as training sequences: texts one by one, in windows, as streams or masked; pairs; inputs with a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from recollect.recipes import recipe
from recollect.recipes.data.sequences import (
    IGNORED,
    Indices,
    Integers,
    RngFactory,
    SequenceBatch,
    SpecialTokens,
    TokenTable,
    build_sequence_rows,
)


@dataclass(frozen=True, kw_only=True)
class CausalSequences:
    """Pieces of text for models that read from left to right: each token is predicted from those before it."""

    flat: Integers
    starts: Indices
    lengths: Integers
    """How many tokens each piece predicts: one fewer than it has."""
    users: Integers
    special_tokens: SpecialTokens
    trained: NDArray[np.bool_] | None = None
    """Which tokens of `flat` are trained on; all if None."""

    @property
    def unpredicted_ids(self) -> tuple[int, ...]:
        """Tokens that need no prediction: those before a text, unless the same token also ends one."""
        return tuple(token_id for token_id in self.special_tokens.before if token_id not in self.special_tokens.after)

    def build_batch(self, indices: Indices, make_rng: RngFactory) -> SequenceBatch:
        """These pieces: inputs are all tokens but the last, targets all but the first."""
        token_ids, filled = build_sequence_rows(
            self.flat, self.starts[indices], self.lengths[indices] + 1, padding=self.special_tokens.padding
        )
        # where texts are joined, that one begins after another ended is no news: it would flatter the loss
        wanted = filled[:, 1:] & ~np.isin(token_ids[:, 1:], self.unpredicted_ids)
        if self.trained is not None:
            places = self.starts[indices][:, None] + np.arange(1, token_ids.shape[1])
            wanted = filled[:, 1:] & self.trained[np.minimum(places, len(self.trained) - 1)]
        targets = np.where(wanted, token_ids[:, 1:], IGNORED)
        inputs = {"input_ids": torch.from_numpy(np.ascontiguousarray(token_ids[:, :-1]))}
        return SequenceBatch(inputs=inputs, targets=torch.from_numpy(targets), token_count=int(wanted.sum()))


def split_texts(tokens: TokenTable, counts: Integers, *, length: int, split: bool) -> tuple[Indices, Indices, Integers]:
    """Lay texts out in pieces of at most `length`: each piece's text, where it begins, and how long it is.

    Args:
        tokens: The texts.
        counts: How many tokens of each text are shared out among its pieces.
        length: How many a piece gets at most.
        split: Whether what is longer is split into several pieces, or else cut off.
    """
    needed = -(-counts // length) if split else np.minimum(counts, 1)
    text = np.repeat(np.arange(len(tokens)), needed)
    offset = (np.arange(len(text)) - np.repeat(np.cumsum(needed) - needed, needed)) * length
    return text, tokens.offsets[text] + offset, np.minimum(counts[text] - offset, length).astype(np.int32)


def lay_out_records(
    tokens: TokenTable, users: Integers, marks: SpecialTokens, *, length: int, split: bool = True
) -> CausalSequences:
    """Each text by itself; longer ones are split so that every token is predicted exactly once, or cut off."""
    text, starts, lengths = split_texts(tokens, np.maximum(tokens.lengths - 1, 0), length=length, split=split)
    return _drop_untrained(tokens, starts, lengths, users[text], marks)


def lay_out_windows(tokens: TokenTable, marks: SpecialTokens, *, length: int) -> CausalSequences:
    """All texts joined and cut into windows of equal length."""
    starts = np.arange(0, len(tokens.flat) - 1, length, dtype=np.int64)
    lengths = np.minimum(len(tokens.flat) - 1 - starts, length).astype(np.int32)
    return _drop_untrained(tokens, starts, lengths, _build_unknown_users(starts), marks)


def _drop_untrained(
    tokens: TokenTable, starts: Indices, lengths: Integers, users: Integers, marks: SpecialTokens
) -> CausalSequences:
    """The laid-out pieces in which something is trained on: one that is nothing but context has no loss."""
    trained = tokens.trained
    if trained is not None:
        before = np.concatenate([[0], np.cumsum(trained)])
        kept = before[starts + lengths + 1] > before[starts + 1]
        starts, lengths, users = starts[kept], lengths[kept], users[kept]
    return CausalSequences(
        flat=tokens.flat, starts=starts, lengths=lengths, users=users, special_tokens=marks, trained=trained
    )


def lay_out_streams(tokens: TokenTable, marks: SpecialTokens, *, length: int, rows: int) -> CausalSequences:
    """All texts joined, as so many parallel streams: sequence `step × rows + row` continues where the last left off.

    Fewer than `rows` tokens at the very end are left out, so that all streams are equally long.
    """
    each = (len(tokens.flat) - 1) // rows
    begins = np.arange(0, each, length, dtype=np.int64)
    starts = (begins[:, None] + each * np.arange(rows, dtype=np.int64)).ravel()
    lengths = np.repeat(np.minimum(each - begins, length), rows).astype(np.int32)
    return CausalSequences(
        flat=tokens.flat, starts=starts, lengths=lengths, users=_build_unknown_users(starts), special_tokens=marks
    )


def _build_unknown_users(starts: Indices) -> Integers:
    """The users of sequences that hold several people's texts."""
    return np.full(len(starts), -1, dtype=np.int32)


@dataclass(frozen=True, kw_only=True)
class MaskedSequences:
    """Pieces of text of which some tokens are hidden and must be found from all the others (BERT's 80/10/10)."""

    flat: Integers
    starts: Indices
    lengths: Integers
    users: Integers
    special_tokens: SpecialTokens
    mask_id: int
    """The token that hides another."""
    share: float
    ordinary_ids: Indices
    """The tokens that may be in for another: all but the special ones."""

    def build_batch(self, indices: Indices, make_rng: RngFactory) -> SequenceBatch:
        """These pieces between the first and last token, freshly masked."""
        lengths = self.lengths[indices]
        inner, filled = build_sequence_rows(
            self.flat, self.starts[indices], lengths, padding=self.special_tokens.padding
        )
        rng = make_rng()
        chosen = filled & (rng.random(inner.shape) < self.share)
        replacement_draw = rng.random(inner.shape)
        shown = np.where(chosen & (replacement_draw < 0.8), self.mask_id, inner)
        shown = np.where(chosen & (replacement_draw >= 0.9), rng.choice(self.ordinary_ids, inner.shape), shown)
        before, after = len(self.special_tokens.before), len(self.special_tokens.after)
        table = np.full((len(indices), before + inner.shape[1] + after), self.special_tokens.padding, dtype=np.int64)
        table[:, :before], table[:, before : before + inner.shape[1]] = self.special_tokens.before, shown
        for position, token_id in enumerate(self.special_tokens.after):
            table[np.arange(len(indices)), before + lengths + position] = token_id
        targets = np.full(table.shape, IGNORED, dtype=np.int64)
        targets[:, before : before + inner.shape[1]] = np.where(chosen, inner, IGNORED)
        read = np.arange(table.shape[1]) < lengths[:, None] + before + after
        inputs = {"input_ids": torch.from_numpy(table), "attention_mask": torch.from_numpy(read.astype(np.int64))}
        return SequenceBatch(inputs=inputs, targets=torch.from_numpy(targets), token_count=int(chosen.sum()))


def lay_out_masked(
    tokens: TokenTable, users: Integers, marks: SpecialTokens, *, tokenizer: Any, settings: recipe.Sequences
) -> MaskedSequences:
    """Each text by itself, in pieces of at most so many tokens, to be masked anew in every batch."""
    split = settings.long == "split"
    text, starts, lengths = split_texts(tokens, tokens.lengths, length=settings.length, split=split)
    return MaskedSequences(
        flat=tokens.flat,
        starts=starts,
        lengths=lengths,
        users=users[text],
        special_tokens=marks,
        mask_id=tokenizer.mask_token_id,
        share=settings.masked,
        ordinary_ids=np.setdiff1d(np.arange(len(tokenizer)), tokenizer.all_special_ids),
    )


@dataclass(frozen=True, kw_only=True)
class PairSequences:
    """Source texts and the target texts to be predicted from them."""

    sources: TokenTable
    targets: TokenTable
    """Each begins with the token that starts the decoder."""
    users: Integers
    padding: int

    @property
    def lengths(self) -> Integers:
        """Of source and target together: both cost time."""
        return self.sources.lengths + self.targets.lengths

    def build_batch(self, indices: Indices, make_rng: RngFactory) -> SequenceBatch:
        """These pairs."""
        source, read = build_sequence_rows(
            self.sources.flat, self.sources.offsets[indices], self.sources.lengths[indices], padding=self.padding
        )
        target, filled = build_sequence_rows(
            self.targets.flat, self.targets.offsets[indices], self.targets.lengths[indices], padding=self.padding
        )
        inputs = {
            "input_ids": torch.from_numpy(source),
            "attention_mask": torch.from_numpy(read.astype(np.int64)),
            "decoder_input_ids": torch.from_numpy(np.ascontiguousarray(target[:, :-1])),
        }
        wanted = np.where(filled[:, 1:], target[:, 1:], IGNORED)
        return SequenceBatch(inputs=inputs, targets=torch.from_numpy(wanted), token_count=int(filled[:, 1:].sum()))


@dataclass(frozen=True, kw_only=True)
class LabelledTextSequences:
    """Texts and their classes."""

    tokens: TokenTable
    classes: Indices
    users: Integers
    padding: int

    @property
    def lengths(self) -> Integers:
        """How many tokens each text has."""
        return self.tokens.lengths

    def build_batch(self, indices: Indices, make_rng: RngFactory) -> SequenceBatch:
        """These texts."""
        token_ids, read = build_sequence_rows(
            self.tokens.flat, self.tokens.offsets[indices], self.tokens.lengths[indices], padding=self.padding
        )
        inputs = {"input_ids": torch.from_numpy(token_ids), "attention_mask": torch.from_numpy(read.astype(np.int64))}
        return SequenceBatch(inputs=inputs, targets=torch.from_numpy(self.classes[indices]), token_count=len(indices))


@dataclass(frozen=True, kw_only=True)
class LabelledArraySequences:
    """Arrays and their classes; held as they came, standardised batch by batch."""

    arrays: NDArray[Any]
    classes: Indices
    users: Integers
    mean: float
    std: float

    @property
    def lengths(self) -> Integers:
        """All alike."""
        return np.ones(len(self.classes), dtype=np.int32)

    def build_batch(self, indices: Indices, make_rng: RngFactory) -> SequenceBatch:
        """These arrays."""
        values = self.arrays[indices].astype(np.float32)
        if self.arrays.dtype == np.uint8:
            values /= np.float32(255)
        values = (values - np.float32(self.mean)) / np.float32(self.std)
        return SequenceBatch(
            inputs={"pixel_values": torch.from_numpy(values)},
            targets=torch.from_numpy(self.classes[indices]),
            token_count=len(indices),
        )
