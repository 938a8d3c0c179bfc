"""Texts that differ from a text in one token: what a masked model would have written there instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recollect import labels
from recollect.models.hugging_face.batches import TokenBudget, pad_batch
from recollect.models.tokens.tokenization import EncodedText, TextEncoder
from recollect.streams import stream

CONTINUATION_PREFIX = "##"
"""How word pieces are marked that continue with a word."""


@dataclass(frozen=True, kw_only=True)
class Substitutes:
    """Puts the most likely other token into a text, at places drawn by the text itself."""

    network: Any
    tokenizer: Any
    encode: TextEncoder
    budget: TokenBudget
    width: int | None
    """How many ordinary tokens are read at once; only the first so many are changed."""

    def generate(self, texts: Sequence[str], count: int) -> list[list[str]]:
        """For each text up to `count` others; fewer if it has fewer tokens. The same whatever the batches."""
        encoded = self.encode(texts)
        positions = [
            _draw_substituted_positions(text, encoded_text, self.width, count)
            for text, encoded_text in zip(texts, encoded, strict=True)
        ]
        masked_at = [(i, position) for i, drawn in enumerate(positions) for position in drawn]
        before, after = (np.array(marks, dtype=np.int64) for marks in (self.encode.prefix_ids, self.encode.suffix_ids))
        read = []
        for i, position in masked_at:
            ids = encoded[i].ids[: self.width].copy()
            ids[position] = self.tokenizer.mask_token_id
            read.append(np.concatenate([before, ids, after]))
        chosen = np.zeros(len(masked_at), dtype=np.int64)
        score = self._build_scorer(
            read, [(encoded[i].ids[position], len(before) + position) for i, position in masked_at]
        )
        for batch, found in self.budget.map_batches([len(ids) for ids in read], score):
            chosen[batch] = found
        changed: list[list[str]] = [[] for _ in texts]
        for (i, position), token_id in zip(masked_at, chosen.tolist(), strict=True):
            changed[i].append(self._replace_token(texts[i], encoded[i], position, token_id))
        return changed

    def _build_scorer(
        self, read: Sequence[NDArray[np.int64]], hidden: Sequence[tuple[int, int]]
    ) -> Callable[[NDArray[np.int64]], NDArray[np.int64]]:
        """What finds the most likely tokens for a batch, that are not those which were hidden."""
        continues = self._is_continuation
        banned = torch.tensor(self.tokenizer.all_special_ids)

        def likeliest(batch: NDArray[np.int64]) -> NDArray[np.int64]:
            ids, mask = (each.to(self.network.device) for each in pad_batch([read[i] for i in batch], 0))
            own = torch.tensor([int(hidden[i][0]) for i in batch])
            with torch.inference_mode():
                logits: Tensor = self.network(input_ids=ids, attention_mask=mask).logits
            logits = logits[torch.arange(len(batch)), [hidden[i][1] for i in batch]].float().cpu()[:, : len(continues)]
            logits[:, banned[banned < logits.shape[1]]] = -torch.inf
            logits[torch.arange(len(batch)), own] = -torch.inf
            # a piece that continues with a word is replaced by such a piece, so that no other word is torn or joined
            logits[continues[own][:, None] != continues[None, : logits.shape[1]]] = -torch.inf
            return logits.argmax(dim=1).numpy()

        return likeliest

    @property
    def _is_continuation(self) -> Tensor:
        """Which tokens continue with a word, or begin with a space; by their number."""
        written = self.tokenizer.convert_ids_to_tokens(list(range(len(self.tokenizer))))
        return torch.tensor([str(each).startswith((CONTINUATION_PREFIX, "Ġ", "▁")) for each in written])

    def _replace_token(self, text: str, encoded_text: EncodedText, position: int, token_id: int) -> str:
        """The text with another token in that place."""
        start, end = int(encoded_text.start[position]), int(encoded_text.end[position])
        written = str(self.tokenizer.decode([token_id])).removeprefix(CONTINUATION_PREFIX)
        if not text[start:end].startswith(" "):
            written = written.lstrip(" ")
        return text[:start] + written + text[end:]


def _draw_substituted_positions(text: str, encoded_text: EncodedText, width: int | None, count: int) -> list[int]:
    """Up to so many different places of a text whose tokens are substituted, drawn by what it says."""
    room = len(encoded_text) if width is None else min(width, len(encoded_text))
    drawn: list[int] = stream(0, labels.STREAM_NEIGHBOURS, text).permutation(room)[:count].tolist()
    return sorted(drawn)
