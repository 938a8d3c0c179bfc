"""Texts that look like rendered conversations: as plain text, their special tokens are spelled out letter by letter."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from recollect.errors import RecollectWarning

_USUAL = r"<\|(?:im_start|im_end|start_header_id|end_header_id|eot_id|user|assistant|system)\|>"
_OTHERS = r"\[/?INST\]|<(?:start|end)_of_turn>"
_SHAPE = re.compile(r"<\|(?!endoftext).+\|>")


class RenderedTextDetector:
    """Warns once of texts that hold the marks of a chat template."""

    def __init__(self, tokenizer: Any) -> None:
        """Collect the marks: the usual ones, and the tokenizer's own special tokens of that shape.

        Args:
            tokenizer: A Hugging Face tokenizer; what ends a plain text, `</s>` or `<|endoftext|>`, is no mark.
        """
        own = {str(each) for each in tokenizer.added_tokens_decoder.values() if each.special}
        marks = sorted(each for each in own if _SHAPE.fullmatch(each))
        self._marks = re.compile("|".join([_USUAL, _OTHERS, *map(re.escape, marks)]))
        self._warned = False

    def watch(self, texts: Iterable[str]) -> Iterator[str]:
        """The same texts; the first that looks rendered makes a warning."""
        for text in texts:
            if not self._warned and (found := self._marks.search(text)):
                self._warned = True
                warnings.warn(
                    f"A plain text holds {found.group()!r} and looks like a rendered conversation. As text it is "
                    "spelled out letter by letter, which no chat model was trained on: keep the turns in a column "
                    "'messages' ({'role': …, 'content': …}), and the model's chat template renders them.",
                    RecollectWarning,
                    stacklevel=4,
                )
            yield text
