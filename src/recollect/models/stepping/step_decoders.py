"""How each kind of model continues from what it remembers: by a state, by keys and values, or by reading all again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

from recollect.models.architectures.stateful import Stateful
from recollect.models.stepping.node_tree import Rows

_CACHE_ERRORS = (RuntimeError, ValueError, TypeError, AttributeError, IndexError, KeyError, NotImplementedError)
"""What a model raises that does not continue from keys and values."""


@dataclass(frozen=True, kw_only=True)
class PrefixState:
    """What was read once for all: the tokens before the root, and the source of a target."""

    ids: Tensor
    """The tokens before the root [1, length]."""
    past: Rows | None = None
    """What the model remembers of them, with one row."""
    source: Any = None
    """What the encoder made of the source, with one row."""
    cross_attention: Rows = ()
    """Keys and values that the decoder takes from the source, with one row."""

    def expand_source(self, rows: int) -> dict[str, Any]:
        """The encoded source for so many rows, as an argument of the model; nothing is copied."""
        if self.source is None:
            return {}
        pieces = {name: piece.expand(rows, *piece.shape[1:]) for name, piece in self.source.items()}
        return {"encoder_outputs": type(self.source)(**pieces)}


class StepDecoder(Protocol):
    """A model that continues from what it remembers."""

    mixes_depths: bool
    """Whether nodes of different depths and origins continue together; then `count_ancestors` is the same for all."""

    def read_prefix(self, ids: Tensor, source: Tensor | None) -> PrefixState:
        """Read the tokens before the root and the root's own [1, length], and the source."""

    def count_ancestors(self, depth: int) -> int:
        """From how many ancestors' memory a node so deep is computed; 0 if from the origin alone."""

    def estimate_bytes(self, origin: PrefixState, depth: int) -> int:
        """How many bytes one node so deep may need while it is computed: logits, keys and values."""

    def decode(self, origin: PrefixState, past: Rows | None, token_ids: Tensor) -> tuple[Rows, Tensor]:
        """Read tokens [nodes, steps] after what is remembered of their ancestors, or, if None, after the origin.

        Returns:
            What to remember of the last of the nodes on each path [nodes, so many, …], and the logits of what follows.
        """


class StateDecoder:
    """Models of ours, whose whole past is in a state of fixed size."""

    def __init__(self, network: Stateful) -> None:
        self._network, self._row = network, _get_row_bytes(network)
        self._decodes = bool(network.config.is_encoder_decoder)
        self.mixes_depths = not self._decodes

    def count_ancestors(self, depth: int) -> int:
        """The parent's."""
        return 1

    def estimate_bytes(self, origin: PrefixState, depth: int) -> int:
        """One row of logits."""
        return self._row

    def read_prefix(self, ids: Tensor, source: Tensor | None) -> PrefixState:
        """The state before the root."""
        encoded = None if source is None else self._network.get_encoder()(source)
        before = PrefixState(ids=ids[:, :-1], source=encoded)
        past = self.decode(before, None, before.ids)[0] if before.ids.shape[1] else None
        return PrefixState(ids=before.ids, past=past, source=encoded)

    def decode(self, origin: PrefixState, past: Rows | None, token_ids: Tensor) -> tuple[Rows, Tensor]:
        """One step from the parent's state, or the whole path from the origin's."""
        if past is None and origin.past is not None:
            past = tuple(piece.expand(len(token_ids), *piece.shape[1:]) for piece in origin.past)
        state = None if past is None else tuple(piece[:, 0] for piece in past)
        name = "decoder_input_ids" if self._decodes else "input_ids"
        read: dict[str, Any] = {name: token_ids, "past_key_values": state, **origin.expand_source(len(token_ids))}
        output = self._network(**read, use_cache=True, logits_to_keep=1)
        return tuple(piece[:, None] for piece in output.past_key_values), output.logits[:, -1]


class CacheDecoder:
    """Transformers: each node remembers its own keys and values; those of its path, put together, are its past."""

    mixes_depths = False

    def __init__(self, network: Any) -> None:
        self._network, self._row = network, _get_row_bytes(network)
        self._decodes = bool(network.config.is_encoder_decoder)

    def count_ancestors(self, depth: int) -> int:
        """All of them."""
        return depth

    def estimate_bytes(self, origin: PrefixState, depth: int) -> int:
        """Logits of its path; the path's keys and values twice, without and with the new ones; and the source's."""
        column = sum(piece.shape[2] * piece.shape[3] * piece.itemsize for piece in origin.past or ())
        source = origin.cross_attention[0].shape[1] if origin.cross_attention else 0
        return self._row * (depth + 1) + column * (2 * (origin.ids.shape[1] + depth + 1) + source)

    def read_prefix(self, ids: Tensor, source: Tensor | None) -> PrefixState:
        """Keys and values of all before the root, and of the source."""
        if not self._decodes:
            output = self._network(input_ids=ids, past_key_values=DynamicCache(), use_cache=True)
            return PrefixState(ids=ids[:, :-1], past=_split_cache(output.past_key_values, slice(0, ids.shape[1] - 1)))
        encoded = self._network.get_encoder()(source)
        output = self._network(
            encoder_outputs=encoded,
            decoder_input_ids=ids,
            past_key_values=EncoderDecoderCache(DynamicCache(), DynamicCache()),
            use_cache=True,
        )
        caches = output.past_key_values
        past = _split_cache(caches.self_attention_cache, slice(0, ids.shape[1] - 1))
        seen = _split_cache(caches.cross_attention_cache, slice(None))
        return PrefixState(ids=ids[:, :-1], past=past, source=encoded, cross_attention=seen)

    def decode(self, origin: PrefixState, past: Rows | None, token_ids: Tensor) -> tuple[Rows, Tensor]:
        """One step after the keys and values of the path, or the whole path after those of the origin."""
        rows, steps = token_ids.shape
        assert origin.past is not None  # noqa: S101 - `read_prefix` put it there
        before = [piece.expand(rows, *piece.shape[1:]) for piece in origin.past]
        if past is not None:
            before = [torch.cat(pieces, dim=1) for pieces in zip(before, past, strict=True)]
        cache: Any = _build_cache(before)
        if self._decodes:
            cache = EncoderDecoderCache(
                cache, _build_cache([piece.expand(rows, *piece.shape[1:]) for piece in origin.cross_attention])
            )
        name = "decoder_input_ids" if self._decodes else "input_ids"
        read: dict[str, Any] = {name: token_ids, "past_key_values": cache, **origin.expand_source(rows)}
        output = self._network(**read, use_cache=True)
        after = output.past_key_values.self_attention_cache if self._decodes else output.past_key_values
        return _split_cache(after, slice(-steps, None)), output.logits[:, -1]


class RereadDecoder:
    """Any other model: the whole path is read again at every step. Slow and always right."""

    mixes_depths = False

    def __init__(self, network: Any) -> None:
        self._network, self._row = network, _get_row_bytes(network)
        self._decodes = bool(network.config.is_encoder_decoder)

    def count_ancestors(self, depth: int) -> int:
        """None."""
        return 0

    def estimate_bytes(self, origin: PrefixState, depth: int) -> int:
        """Logits of the whole path."""
        return self._row * (origin.ids.shape[1] + depth + 1)

    def read_prefix(self, ids: Tensor, source: Tensor | None) -> PrefixState:
        """The tokens themselves."""
        encoded = None if source is None else self._network.get_encoder()(source)
        return PrefixState(ids=ids[:, :-1], source=encoded)

    def decode(self, origin: PrefixState, past: Rows | None, token_ids: Tensor) -> tuple[Rows, Tensor]:
        """Everything from the first token."""
        path_ids = torch.cat([origin.ids.expand(len(token_ids), -1), token_ids], dim=1)
        name = "decoder_input_ids" if self._decodes else "input_ids"
        read: dict[str, Any] = {name: path_ids, **origin.expand_source(len(token_ids))}
        return (), self._network(**read, use_cache=False).logits[:, -1]


@torch.inference_mode()
def choose_decoder(network: Any) -> StepDecoder:
    """The fastest way to walk this model that gives the same as reading everything again, which a trial decides."""
    if isinstance(network, Stateful):
        return StateDecoder(network)
    slow, fast = RereadDecoder(network), CacheDecoder(network)
    ids = torch.tensor([[1, 2, 1]], device=network.device)
    source = ids if network.config.is_encoder_decoder else None
    expected = slow.decode(slow.read_prefix(ids, source), None, ids.expand(2, -1))[1]
    try:
        origin = fast.read_prefix(ids, source)
        rows, _ = fast.decode(origin, None, ids[:, :2].expand(2, -1))
        _, found = fast.decode(origin, rows, ids[:, 2:].expand(2, -1))
    except _CACHE_ERRORS:
        return slow
    scale = max(1.0, float(expected.abs().max()))
    allowed = 1e-4 if expected.dtype in (torch.float32, torch.float64) else 5e-2
    return fast if found.shape == expected.shape and float((found - expected).abs().max()) < allowed * scale else slow


def _get_row_bytes(network: Any) -> int:
    """Bytes of one row of logits that a decoder computes, in single precision."""
    return 4 * int(network.config.get_text_config().vocab_size)


def _split_cache(cache: Any, steps: slice) -> Rows:
    """The keys and values in a decoder's cache of some steps, layer after layer."""
    layers = [piece for layer in cache.layers for piece in (layer.keys, layer.values)]
    return tuple(piece[:, :, steps].transpose(1, 2) for piece in layers)


def _build_cache(columns: list[Tensor]) -> DynamicCache:
    """The cache of a decoder that holds these keys and values."""
    turned = [piece.transpose(1, 2) for piece in columns]
    return DynamicCache(zip(turned[::2], turned[1::2], strict=True))
