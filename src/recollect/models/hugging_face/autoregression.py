"""What causal and seq2seq models share: passes in which every token read predicts the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recollect.errors import ModelError
from recollect.models.answers import Answers
from recollect.models.hugging_face.batches import Indices, TokenBudget, pad_batch
from recollect.models.hugging_face.token_scores import TokenScorer, TokenScores, build_not_finite_error
from recollect.models.model import Question
from recollect.models.tokens.tokenization import EncodedText

Ids = NDArray[np.int64]
Inputs = dict[str, Any]


@dataclass(frozen=True)
class AutoregressivePass:
    """Tokens that are read at once, and what follows the last so many of them."""

    input_ids: Ids
    target_ids: Ids
    wanted: NDArray[np.bool_] | None = None
    """Which of the targets are scored; all if None."""

    @property
    def scored_ids(self) -> Ids:
        """The targets of an autoregressive pass that are scored."""
        return self.target_ids if self.wanted is None else self.target_ids[self.wanted]

    def list_rows(self, begin: int) -> Ids:
        """The rows of logits in which an autoregressive pass predicts its targets, if they start at `begin`."""
        end = begin + len(self.input_ids)
        rows = np.arange(end - len(self.target_ids), end)
        return rows if self.wanted is None else rows[self.wanted]


class AutoregressiveScorer:
    """Reads passes in batches and gives the numbers of all that follows, pass after pass.

    Shorter passes are filled up on the right, and no mask hides that: a model that predicts from left to right never
    looks there (which is made sure of), and without a mask it is faster.
    """

    def __init__(
        self, network: Any, question: Question, *, name: str, padding: int, encoder_inputs: Inputs | None = None
    ) -> None:
        """Find out how the network makes its logits.

        Args:
            network: A Hugging Face model, in evaluation mode.
            question: The scoring options.
            name: How the user named it.
            padding: The token that passes are filled up with.
            encoder_inputs: Something small for an encoder to read while the decoder reads a pass.

        Raises:
            ModelError: The network looks at tokens that come later.
        """
        # keys and values are of use only to those who continue from them
        self._always: Inputs = {"use_cache": False} if hasattr(network.config, "use_cache") else {}
        self._reads_as = "" if encoder_inputs is None else "decoder_"
        self._network, self._padding = network, padding
        probe = {**self._build_inputs(torch.tensor([[0, 1, 0, 1]])), **(encoder_inputs or {})}
        self._refuse_looking_ahead(probe, name)
        self._reader = TokenScorer(network, probe, question.sampling)
        self.budget = TokenBudget.of(
            network, vocabulary=0 if self._reader.skips_full_logits else self._reader.vocabulary
        )

    def score_passes(
        self,
        passes: Sequence[AutoregressivePass],
        *,
        encoder_inputs: Callable[[Indices], Inputs] | None = None,
        costs: Sequence[int] | None = None,
    ) -> TokenScores:
        """The numbers of all that follows, in the order of the passes.

        Args:
            passes: What is read.
            encoder_inputs: What the network reads beside some of the passes: the sources of their targets.
            costs: The length of each pass in the eyes of the budget; by default how much it reads.
        """
        ends = np.cumsum([0, *(len(each.scored_ids) for each in passes)])
        found = TokenScores.allocate(int(ends[-1]), double=self._network.dtype == torch.float64)
        lengths = [len(each.input_ids) for each in passes] if costs is None else costs
        for batch, scores in self.budget.map_batches(
            lengths, lambda batch: self._score_batch(passes, batch, encoder_inputs), build=TokenScores
        ):
            found.put(np.concatenate([np.arange(ends[i], ends[i + 1]) for i in batch]), scores)
        return found

    def _score_batch(
        self, passes: Sequence[AutoregressivePass], batch: Indices, encoder_inputs: Callable[[Indices], Inputs] | None
    ) -> TokenScores:
        """The numbers of one batch."""
        chosen = [passes[i] for i in batch]
        ids, _ = pad_batch([each.input_ids for each in chosen], self._padding)
        rows = [each.list_rows(i * ids.shape[1]) for i, each in enumerate(chosen)]
        device = self._network.device
        return self._reader.score(
            {**self._build_inputs(ids), **(encoder_inputs(batch) if encoder_inputs else {})},
            torch.from_numpy(np.concatenate(rows)).to(device),
            torch.from_numpy(np.concatenate([each.scored_ids for each in chosen])).to(device),
        )

    def _build_inputs(self, ids: Tensor) -> Inputs:
        """What the network is given to read: every token of the table, those on the right too."""
        placed = ids.to(self._network.device)
        names = (f"{self._reads_as}input_ids", f"{self._reads_as}attention_mask")
        return {**self._always, names[0]: placed, names[1]: torch.ones_like(placed)}

    @torch.inference_mode()
    def _refuse_looking_ahead(self, probe: Inputs, name: str) -> None:
        """Refuse a network whose predictions depend on tokens that come later: it would be shown the answers."""
        other = {**probe, **self._build_inputs(torch.tensor([[0, 1, 1, 0]]))}
        first_logits, second_logits = (self._network(**inputs).logits[:, :2] for inputs in (probe, other))
        if bool(torch.isnan(first_logits).any()):
            raise build_not_finite_error()
        # weights of 8 bits are multiplied with activations that are rounded together, those of later tokens included
        near = 1e-3 if getattr(self._network, "hf_quantizer", None) is None else 5e-2
        largest = float(first_logits.abs().max())
        if not torch.allclose(first_logits, second_logits, rtol=near, atol=near * largest, equal_nan=True):
            raise ModelError(
                f"The model {name!r} attends to the tokens that it has to predict.",
                do="It does not predict from left to right: set --kind masked, or is_decoder in its configuration.",
                code="looks_ahead",
            )


def build_autoregressive_answers(digests: Sequence[str], texts: Sequence[EncodedText], scores: TokenScores) -> Answers:
    """Answers about tokens of which each was predicted once, in order.

    Args:
        digests: The records.
        texts: Their tokens that were predicted.
        scores: One row per predicted token.
    """
    joined = EncodedText.concatenate(texts)
    return Answers(
        records=tuple(digests),
        offsets=np.cumsum([0, *map(len, texts)], dtype=np.int64),
        pattern=np.zeros(len(joined), dtype=np.int32),
        position=joined.position,
        start=joined.start,
        end=joined.end,
        known=joined.known,
        **vars(scores),
    )
