"""Causal language models: every scored token of a record predicted once from those before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recollect.corpora.record import Record
from recollect.errors import ModelError
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.hugging_face.autoregression import (
    AutoregressivePass,
    AutoregressiveScorer,
    build_autoregressive_answers,
)
from recollect.models.hugging_face.batches import TokenBudget
from recollect.models.loading.pretrained import Pretrained
from recollect.models.model import Kind, Question
from recollect.models.stepping.tree_stepper import TreeStepper
from recollect.models.tokens.chat_template import find_template
from recollect.models.tokens.record_encoder import RecordEncoder, TokenSequence
from recollect.models.tokens.token_spelling import get_spelling
from recollect.models.tokens.tokenization import TextEncoder
from recollect.models.tokens.windows import get_window_width, plan_windows


class Causal:
    """A Hugging Face causal language model, transformer or recurrent.

    The first token of a text is predicted only if something was read before it in training too: the tokens that
    the tokenizer itself puts there, or the one that the model's card names as `start_symbol`. A text longer than
    the model reads at once is read in windows; the tokens before the text are in the first window only.
    """

    kind: Kind = "causal"
    access = Access.FULL

    def __init__(self, pretrained: Pretrained, question: Question) -> None:
        """Make a loaded model askable.

        Args:
            pretrained: The model with its tokenizer.
            question: How long a window is read.

        Raises:
            ModelError: The window is longer than the model reads, its card names an unknown start token, or it looks
                ahead.
        """
        network, tokenizer = pretrained.network, pretrained.tokenizer
        template = find_template(tokenizer, question.chat_template)
        self.name, self.digest = pretrained.name, pretrained.digest
        self.question, self.revision = replace(question, chat_template=template), pretrained.revision
        self.tokenizer, self._network = tokenizer, network
        self._encode_text = TextEncoder(tokenizer)
        self._before = self._encode_text.prefix_ids or get_start_token(pretrained.card, tokenizer)
        self._encode = RecordEncoder(tokenizer, name=self.name, template=template, before=self._before)
        self._width = get_window_width(network, question, name=self.name)
        self._passes = AutoregressiveScorer(network, question, name=self.name, padding=tokenizer.pad_token_id or 0)

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
        """One row per scored token, in the order of the record.

        Raises:
            CorpusError: A record has no text, or the chat template cannot render it.
            ModelError: There are conversations, and no chat template.
        """
        distinct = {record.digest: record for record in records}
        sequences = self._encode(list(distinct.values()))
        passes = [each for sequence in sequences for each in self._plan_passes(sequence)]
        texts = [sequence.text for sequence in sequences]
        return build_autoregressive_answers(tuple(distinct), texts, self._passes.score_passes(passes))

    def stepper(self, *, memory: int | None = None) -> TreeStepper:
        """The model queried token by token, keeping at most so many bytes of what it remembers between steps."""
        stepper = TreeStepper(
            self._network,
            lambda text: [*self._before, *self._encode_text([text])[0].ids],
            spelling=lambda: get_spelling(self.tokenizer),
            longest=self._width,
            memory=memory,
        )
        stepper.encode_reply = self._encode.encode_reply
        return stepper

    def _plan_passes(self, sequence: TokenSequence) -> Iterator[AutoregressivePass]:
        """The passes in which one record is read: up to its last scored token, which is predicted but need not be."""
        places = np.flatnonzero(sequence.scored)
        if not len(places):
            return
        ids, whole = sequence.ids, len(places) == len(sequence.ids) - places[0]
        for window in plan_windows(int(places[-1]), self._width):
            begin = max(int(places[0]), window.begin + window.skip + 1)
            wanted = sequence.scored[begin : window.end + 1]
            if wanted.any():
                yield AutoregressivePass(
                    input_ids=ids[window.begin : window.end],
                    target_ids=ids[begin : window.end + 1],
                    wanted=None if whole else wanted,
                )


def get_start_token(card: Mapping[str, Any], tokenizer: Any) -> list[int]:
    """The token that precedes every text of a causal model, where the model's card names one.

    Raises:
        ModelError: The tokenizer does not know it.
    """
    start = card.get("start_symbol")
    if start is None:
        return []
    token_id = start if isinstance(start, int) else tokenizer.get_vocab().get(start)
    if token_id is None or not 0 <= token_id < len(tokenizer):
        raise ModelError(
            f"The model's card names the start token {start!r}, which is not in its tokenizer's vocabulary.",
            do="Put the token that every training text started with into card.json, or remove the entry.",
            code="unknown_start_token",
        )
    return [token_id]
