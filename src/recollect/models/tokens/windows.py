"""How much a model reads at once, and the windows in which it reads a text that is longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recollect.errors import ModelError
from recollect.models.model import Question

UNLIMITED = 10**6
"""Tokenizers write an astronomical number where they know of no limit."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Tokens `begin` to `end` of a text are read; what follows the first `skip` of them was predicted before."""

    begin: int
    end: int
    skip: int


def plan_windows(size: int, width: int | None) -> list[Window]:
    """Windows of half a window's stride, in which what follows each token is predicted exactly once.

    The first window predicts from the beginning; every later one predicts only what the one before it did not
    reach, so that half a window or more is known before each token, as far as the text goes.

    Args:
        size: How many tokens are to be read.
        width: How many can be read at once; None for any number: then it is one pass, because a pass that forgot
            what came before would give other numbers.

    >>> [(w.begin, w.end, w.skip) for w in plan_windows(9, 4)]
    [(0, 4, 0), (2, 6, 2), (4, 8, 2), (6, 9, 2)]
    """
    if width is None or size <= width:
        return [Window(begin=0, end=size, skip=0)] if size > 0 else []
    stride = max(1, width // 2)
    found = [Window(begin=0, end=width, skip=0)]
    while (before := found[-1]).end < size:
        begin = before.begin + stride
        found.append(Window(begin=begin, end=min(begin + width, size), skip=before.end - begin))
    return found


def get_context_length(network: Any, tokenizer: Any = None) -> int | None:
    """How many tokens the model can read in one window; None if there is no limit (recurrent, relative positions).

    Args:
        network: A Hugging Face model.
        tokenizer: If given, the limit that it states counts too, where the model has one at all.
    """
    from torch import nn  # a server's windows are planned without torch

    config = network.config.get_text_config()
    longest = getattr(config, "max_position_embeddings", None)
    if longest is None or longest <= 0:
        return None
    # RoBERTa and its kin leave the first places of their table to padding
    unused = [
        module.padding_idx + 1
        for name, module in network.named_modules()
        if "position" in name.rpartition(".")[2] and isinstance(module, nn.Embedding) and module.padding_idx is not None
    ]
    stated = getattr(tokenizer, "model_max_length", UNLIMITED)
    return min(int(longest) - max(unused, default=0), int(stated) if stated < UNLIMITED else UNLIMITED)


def get_window_width(network: Any, question: Question, *, name: str, tokenizer: Any = None) -> int | None:
    """How many tokens are read at once: what the question says, within what the model can.

    Raises:
        ModelError: The question wants more than the model can read.
    """
    longest = get_context_length(network, tokenizer)
    if longest is not None and question.window is not None and question.window > longest:
        raise ModelError(
            f"A window of {question.window} tokens was requested; the model {name!r} reads at most {longest}.",
            do=f"Choose a window of {longest} or less, or leave it out.",
            code="window_too_long",
        )
    return longest if question.window is None else question.window
