"""Texts that differ from a text in one symbol: what a masked model would have written there instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recollect import labels
from recollect.models.batching import Budget, padded
from recollect.models.encoding import Encoded, Encoder
from recollect.streams import stream

CONTINUES = "##"
"""How word pieces are marked that go on with a word."""


@dataclass(frozen=True, kw_only=True)
class Substitutes:
    """Puts the likeliest other symbol into a text, at places drawn by the text itself."""

    network: Any
    tokenizer: Any
    encode: Encoder
    budget: Budget
    width: int | None
    """How many ordinary symbols are read at once; only the first so many are changed."""

    def of(self, texts: Sequence[str], count: int) -> list[list[str]]:
        """For each text up to `count` others; fewer if it has fewer symbols. The same whatever the batches."""
        encoded = self.encode(texts)
        places = [_places(text, symbols, self.width, count) for text, symbols in zip(texts, encoded, strict=True)]
        asked = [(i, place) for i, drawn in enumerate(places) for place in drawn]
        before, after = (np.array(marks, dtype=np.int64) for marks in (self.encode.before, self.encode.after))
        read = []
        for i, place in asked:
            ids = encoded[i].ids[: self.width].copy()
            ids[place] = self.tokenizer.mask_token_id
            read.append(np.concatenate([before, ids, after]))
        chosen = np.zeros(len(asked), dtype=np.int64)
        ask = self._asking(read, [(encoded[i].ids[place], len(before) + place) for i, place in asked])
        for batch, found in self.budget.each([len(ids) for ids in read], ask):
            chosen[batch] = found
        changed: list[list[str]] = [[] for _ in texts]
        for (i, place), symbol in zip(asked, chosen.tolist(), strict=True):
            changed[i].append(self._put(texts[i], encoded[i], place, symbol))
        return changed

    def _asking(
        self, read: Sequence[NDArray[np.int64]], hidden: Sequence[tuple[int, int]]
    ) -> Callable[[NDArray[np.int64]], NDArray[np.int64]]:
        """What finds the likeliest symbols for a batch, that are not those which were hidden."""
        continues = self._continues
        banned = torch.tensor(self.tokenizer.all_special_ids)

        def likeliest(batch: NDArray[np.int64]) -> NDArray[np.int64]:
            ids, mask = (each.to(self.network.device) for each in padded([read[i] for i in batch], 0))
            own = torch.tensor([int(hidden[i][0]) for i in batch])
            with torch.inference_mode():
                logits: Tensor = self.network(input_ids=ids, attention_mask=mask).logits
            logits = logits[torch.arange(len(batch)), [hidden[i][1] for i in batch]].float().cpu()[:, : len(continues)]
            logits[:, banned[banned < logits.shape[1]]] = -torch.inf
            logits[torch.arange(len(batch)), own] = -torch.inf
            # a piece that goes on with a word is replaced by such a piece, so that no other word is torn or joined
            logits[continues[own][:, None] != continues[None, : logits.shape[1]]] = -torch.inf
            return logits.argmax(dim=1).numpy()

        return likeliest

    @property
    def _continues(self) -> Tensor:
        """Which symbols go on with a word, or begin with a space; by their number."""
        written = self.tokenizer.convert_ids_to_tokens(list(range(len(self.tokenizer))))
        return torch.tensor([str(each).startswith((CONTINUES, "Ġ", "▁")) for each in written])

    def _put(self, text: str, symbols: Encoded, place: int, symbol: int) -> str:
        """The text with another symbol in that place."""
        start, end = int(symbols.start[place]), int(symbols.end[place])
        written = str(self.tokenizer.decode([symbol])).removeprefix(CONTINUES)
        if not text[start:end].startswith(" "):
            written = written.lstrip(" ")
        return text[:start] + written + text[end:]


def _places(text: str, symbols: Encoded, width: int | None, count: int) -> list[int]:
    """Up to so many different places of a text, drawn by what it says."""
    room = len(symbols) if width is None else min(width, len(symbols))
    drawn: list[int] = stream(0, labels.STREAM_NEIGHBOURS, text).permutation(room)[:count].tolist()
    return sorted(drawn)
