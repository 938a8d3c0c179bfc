"""A model queried token by token: batched over nodes of any depth, the fixed prefix read once, memory bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recollect.checks import check_at_least
from recollect.errors import ModelError
from recollect.models.hugging_face.token_scores import build_not_finite_error
from recollect.models.model import Frontier
from recollect.models.stepping.node_tree import Nodes, NodeStateCache, NodeTree, Rows
from recollect.models.stepping.step_decoders import PrefixState, choose_decoder
from recollect.models.tokens.token_spelling import Spelling

DEFAULT_MEMORY = 2**30
"""Bytes of states, or of keys and values, that are kept by default."""
_NO_NODES = np.empty(0, dtype=np.int64)
_MAX_TOKENS = 8192
_MAX_BYTES = 2**28

Encode = Callable[[str], Sequence[int]]
"""From a text to its tokens."""


class TreeStepper:
    """The `Stepper` of every model on this machine.

    A node is computed from what is remembered of its ancestors. What exceeds the memory is forgotten, oldest first,
    and computed again from the path when it is needed, so that results depend on the memory in their last digits only.
    """

    def __init__(
        self,
        network: Any,
        encode: Encode,
        *,
        spelling: Callable[[], Spelling],
        encode_source: Encode | None = None,
        longest: int | None = None,
        memory: int | None = None,
    ) -> None:
        """Make a model walkable.

        Args:
            network: A Hugging Face causal or encoder–decoder model, in evaluation mode.
            encode: The tokens of a prefix, with all that is before it in such a model.
            spelling: Returns how the tokens are spelled; called once, if at all.
            encode_source: The tokens of a source, with all that is around it; for encoder–decoders.
            longest: The most tokens that the model reads; None if any number.
            memory: How many bytes may be kept between steps (`DEFAULT_MEMORY` if None). A step itself needs some more.
        """
        memory = DEFAULT_MEMORY if memory is None else memory
        check_at_least(0, memory=memory)
        self._decoder = choose_decoder(network)
        self._device = network.device
        self._encode, self._encode_source, self._longest = encode, encode_source, longest
        self.encode_reply: Callable[[str, str], Sequence[int]] | None = None
        """The tokens of a conversation up to where the assistant is, of what the user and it say; for causal models."""
        self._vocabulary = int(network.config.get_text_config().vocab_size)
        self._tree, self._memory = NodeTree(), NodeStateCache(memory)
        self._origins: list[PrefixState] = []
        self._lengths: list[int] = []
        self._spelling = spelling
        self._final_nodes = _NO_NODES
        """Nodes that nobody will continue from."""
        self._dtype = torch.float64 if network.dtype == torch.float64 else torch.float32

    @cached_property
    def spelling(self) -> Spelling:
        """How its tokens are spelled."""
        return self._spelling()

    def encode(self, text: str) -> list[int]:
        """The tokens of a prefix as `start` of the tree reads it, with those that precede every text."""
        return [int(token_id) for token_id in self._encode(text)]

    def reply_to(self, user_turn: str) -> TreeStepper:
        """The same stepper, whose texts are what the assistant replies to a turn of the user.

        Raises:
            ModelError: It is no causal model, or has no chat template.
        """
        if self.encode_reply is None:
            raise ModelError(
                "An encoder–decoder holds no conversation.", do="Give the source in its place.", code="no_chat"
            )
        other = copy(self)
        other._encode = partial(self.encode_reply, user_turn)
        other._encode("")  # refused at once where there is no template
        return other

    @torch.inference_mode()
    def start(self, prefix: str | Sequence[int], *, source: str | Sequence[int] | None = None) -> Frontier:
        """The root of a new tree: the node after `prefix` (for seq2seq: of the target, given the source).

        Args:
            prefix: A text, or all tokens as they are, with those that are before every text.
            source: Likewise.

        Raises:
            ModelError: There is no token to start from, or a source is missing, or not wanted.
        """
        ids = self.encode(prefix) if isinstance(prefix, str) else list(prefix)
        if not ids:
            raise ModelError(
                "The prefix is empty and this model puts no start token before a text, so it predicts no first token.",
                do="Give a prefix of at least one token.",
                code="empty_prefix",
            )
        self._refuse_too_long(len(ids))
        self._origins.append(
            self._decoder.read_prefix(self._to_tensor(np.array([ids])), self._encode_source_ids(source))
        )
        self._lengths.append(len(ids))
        return Frontier(self._tree.add_root(ids[-1], len(self._origins) - 1))

    def step(
        self,
        state: Frontier,
        parents: Sequence[int],
        token_ids: Sequence[int],
        *,
        among: Sequence[int] | None = None,
        least: NDArray[np.float64] | None = None,
        last: NDArray[np.bool_] | None = None,
    ) -> tuple[Frontier, NDArray[Any]]:
        """One level deeper in the tree; see `Stepper.step`.

        Raises:
            ModelError: A path is longer than the model reads, or its numbers are not finite.
        """
        children = self.add_children(state, parents, token_ids)
        self._final_nodes = _NO_NODES if last is None else children.nodes[last]
        return children, self.score_next(children, among=among)

    def add_children(self, state: Frontier, parents: Sequence[int], token_ids: Sequence[int]) -> Frontier:
        """The new nodes of the tree that `step` would give, unread until their continuations are queried."""
        above = state.nodes[np.asarray(parents, dtype=np.int64)]
        read = np.array(self._lengths, dtype=np.int64)[self._tree.origin[above]] + self._tree.depth[above] + 1
        self._refuse_too_long(int(read.max(initial=0)))
        return Frontier(self._tree.add_children(above, np.asarray(token_ids, dtype=np.int64)))

    @torch.inference_mode()
    def score_next(
        self, state: Frontier, *, among: Sequence[int] | None = None, least: NDArray[np.float64] | None = None
    ) -> NDArray[Any]:
        """Log-probabilities of what may follow these nodes [nodes, among]; costs one step each."""
        chosen = None if among is None else self._to_tensor(np.asarray(among, dtype=np.int64))
        width = self._vocabulary if among is None else len(among)
        found = np.empty((len(state), width), dtype=np.float64 if self._dtype == torch.float64 else np.float32)
        for rows, logits in self._iter_logits(state.nodes):
            found[rows] = self._normalise(logits, chosen)
        return found

    def forget(self) -> None:
        """Drop what is remembered of all nodes: what follows is computed from their paths, as if it were the first."""
        self._memory.clear()

    def _encode_source_ids(self, source: str | Sequence[int] | None) -> Tensor | None:
        """The tokens of the source, if the model reads one."""
        if (source is None) != (self._encode_source is None):
            found, code = ("needs a", "source_missing") if source is None else ("reads no", "source_not_read")
            raise ModelError(
                f"This model {found} source.", do="Give source= to encoder–decoders, and to no other model.", code=code
            )
        if source is None or self._encode_source is None:
            return None
        ids = self._encode_source(source) if isinstance(source, str) else source
        if not len(ids):
            raise ModelError("The source is empty.", do="Give a source of at least one token.", code="empty_source")
        return self._to_tensor(np.array([ids]))

    def _normalise(self, logits: Tensor, among: Tensor | None) -> NDArray[Any]:
        """Log-probabilities over the whole vocabulary, of those requested."""
        logits = logits.to(self._dtype)
        total = logits.logsumexp(1, keepdim=True)
        if not bool(total.isfinite().all()):
            raise build_not_finite_error()
        shown = logits if among is None else logits.index_select(1, among)
        return (shown - total).cpu().numpy()

    def _iter_logits(self, nodes: Nodes) -> Iterator[tuple[Nodes, Tensor]]:
        """The logits of what follows the nodes, part by part, each with the places of its nodes."""
        for indices in self._split_nodes(
            nodes, np.arange(len(nodes)), by_origin_and_depth=not self._decoder.mixes_depths
        ):
            piece = nodes[indices]
            ancestors = self._tree.get_paths(
                self._tree.parent[piece], self._decoder.count_ancestors(int(self._tree.depth[piece[0]]))
            )
            known = self._memory.contains(ancestors).all(axis=1) & (ancestors.shape[1] > 0)
            if known.any():
                past = self._memory.get(ancestors[known])
                yield indices[known], self._decode(piece[known], past, steps=1)
            for alike in self._split_nodes(nodes, indices[~known], by_origin_and_depth=True):
                for few in _split_tree_nodes(alike, _MAX_TOKENS // self._count_steps(nodes[alike])):
                    yield few, self._decode(nodes[few], None, steps=self._count_steps(nodes[few]))

    def _decode(self, nodes: Nodes, past: Rows | None, *, steps: int) -> Tensor:
        """The logits after the last so many tokens of each node's path; what the model remembers is kept."""
        lines = self._tree.get_paths(nodes, steps)
        origin = self._origins[self._tree.origin[nodes[0]]]
        rows, logits = self._decoder.decode(origin, past, self._to_tensor(self._tree.token[lines]))
        if rows:
            new, first = np.unique(lines[:, -rows[0].shape[1] :], return_index=True)
            absent = ~(self._memory.contains(new) | np.isin(new, self._final_nodes))
            self._memory.put(new[absent], tuple(_select_node_rows(row.flatten(0, 1), first[absent]) for row in rows))
        return logits

    def _split_nodes(self, nodes: Nodes, indices: Nodes, *, by_origin_and_depth: bool) -> Iterator[Nodes]:
        """Places of nodes that are computed at once; if `by_origin_and_depth`, only nodes of one origin and depth."""
        if not len(indices):
            return
        groups = [indices]
        if by_origin_and_depth:
            keys = self._tree.origin[nodes[indices]].astype(np.int64) << 32 | self._tree.depth[nodes[indices]]
            order = np.argsort(keys, kind="stable")
            groups = np.split(indices[order], np.flatnonzero(np.diff(keys[order])) + 1)
        for group in groups:
            first = nodes[group[0]]
            bulk = self._decoder.estimate_bytes(self._origins[self._tree.origin[first]], int(self._tree.depth[first]))
            yield from _split_tree_nodes(group, min(_MAX_TOKENS, _MAX_BYTES // bulk))

    def _count_steps(self, nodes: Nodes) -> int:
        """How many tokens are read from the origin to nodes that are equally deep."""
        return int(self._tree.depth[nodes[0]]) + 1

    def _to_tensor(self, values: NDArray[Any]) -> Tensor:
        """Whole numbers where the model is."""
        return torch.from_numpy(values.astype(np.int64)).to(self._device)

    def _refuse_too_long(self, token_count: int) -> None:
        """Refuse a path that the model cannot read."""
        if self._longest is not None and token_count > self._longest:
            raise ModelError(
                f"{token_count} tokens are to be read; the model reads at most {self._longest}.",
                do="Use a shorter prefix, or a model with a longer context.",
                code="text_too_long",
            )


def _split_tree_nodes(indices: Nodes, max_size: int) -> Iterator[Nodes]:
    """The nodes of a tree in pieces of at most so many, and at least one."""
    max_size = max(1, max_size)
    for begin in range(0, len(indices), max_size):
        yield indices[begin : begin + max_size]


def _select_node_rows(rows: Tensor, indices: Nodes) -> Tensor:
    """The rows of some nodes of the tree; copied only if they are not all."""
    if len(indices) == len(rows) and bool((indices == np.arange(len(rows))).all()):
        return rows
    return rows.index_select(0, torch.from_numpy(indices).to(rows.device))
