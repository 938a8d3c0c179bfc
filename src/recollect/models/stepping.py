"""A model walked symbol by symbol: batched over nodes of any depth, the fixed prefix read once, memory bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recollect.errors import ModelError
from recollect.models.model import Frontier
from recollect.models.nodes import Memory, Nodes, Rows, Tree
from recollect.models.spelling import Spelling
from recollect.models.walkers import Origin, walker_of
from recollect.settings import at_least

MEMORY = 2**30
"""Bytes of states, or of keys and values, that are kept unless said otherwise."""
_NOBODY = np.empty(0, dtype=np.int64)
_SYMBOLS_AT_ONCE = 8192
_BYTES_AT_ONCE = 2**28

Encode = Callable[[str], Sequence[int]]
"""From a text to its symbols."""


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
            encode: The symbols of a prefix, with all that stands before it in such a model.
            spelling: Tells how the symbols are spelled; asked once, if at all.
            encode_source: The symbols of a source, with all that stands around it; for encoder–decoders.
            longest: The most symbols that the model reads; None if any number.
            memory: How many bytes may be kept between steps (`MEMORY` if None). A step itself needs some more.
        """
        memory = MEMORY if memory is None else memory
        at_least(0, memory=memory)
        self._walker = walker_of(network)
        self._device = network.device
        self._encode, self._encode_source, self._longest = encode, encode_source, longest
        self._vocabulary = int(network.config.get_text_config().vocab_size)
        self._tree, self._memory = Tree(), Memory(memory)
        self._origins: list[Origin] = []
        self._lengths: list[int] = []
        self._spelling = spelling
        self._passing = _NOBODY
        """Nodes that nobody will go on from."""
        self._number = torch.float64 if network.dtype == torch.float64 else torch.float32

    @cached_property
    def spelling(self) -> Spelling:
        """How its symbols are spelled."""
        return self._spelling()

    def symbols(self, text: str) -> list[int]:
        """The symbols of a prefix as `start` reads it, with those that stand before every text."""
        return [int(symbol) for symbol in self._encode(text)]

    @torch.inference_mode()
    def start(self, prefix: str | Sequence[int], *, source: str | Sequence[int] | None = None) -> Frontier:
        """The one node that stands after `prefix` (for seq2seq: of the target, given the source).

        Args:
            prefix: A text, or all symbols as they are, with those that stand before every text.
            source: Likewise.

        Raises:
            ModelError: There is no symbol to start from, or a source is missing, or not wanted.
        """
        ids = self.symbols(prefix) if isinstance(prefix, str) else list(prefix)
        if not ids:
            raise ModelError(
                "The prefix is empty and nothing stands before a text in this model, so it predicts no first symbol.",
                do="Give a prefix of at least one symbol.",
                code="empty_prefix",
            )
        self._refuse_too_long(len(ids))
        self._origins.append(self._walker.begin(self._tensor(np.array([ids])), self._source(source)))
        self._lengths.append(len(ids))
        return Frontier(self._tree.plant(ids[-1], len(self._origins) - 1))

    def step(
        self,
        state: Frontier,
        parents: Sequence[int],
        symbols: Sequence[int],
        *,
        among: Sequence[int] | None = None,
        last: NDArray[np.bool_] | None = None,
    ) -> tuple[Frontier, NDArray[Any]]:
        """Append one symbol to each parent: the new nodes, and what may follow them [children, among].

        Args:
            state: Nodes that `start` and `step` gave out.
            parents: Rows of `state`; one may come several times.
            symbols: One symbol per parent.
            among: The symbols whose log-probabilities are wanted; None for the whole vocabulary.
            last: Which of the new nodes nobody will go on from: nothing of them is kept.

        Raises:
            ModelError: A path is longer than the model reads, or its numbers are not finite.
        """
        children = self.below(state, parents, symbols)
        self._passing = _NOBODY if last is None else children.nodes[last]
        return children, self.following(children, among=among)

    def below(self, state: Frontier, parents: Sequence[int], symbols: Sequence[int]) -> Frontier:
        """The new nodes that `step` would give, unread: the model is asked when what follows them is."""
        above = state.nodes[np.asarray(parents, dtype=np.int64)]
        read = np.array(self._lengths, dtype=np.int64)[self._tree.origin[above]] + self._tree.depth[above] + 1
        self._refuse_too_long(int(read.max(initial=0)))
        return Frontier(self._tree.grow(above, np.asarray(symbols, dtype=np.int64)))

    @torch.inference_mode()
    def following(self, state: Frontier, *, among: Sequence[int] | None = None) -> NDArray[Any]:
        """Log-probabilities of what may follow these nodes [nodes, among]; costs one step each."""
        chosen = None if among is None else self._tensor(np.asarray(among, dtype=np.int64))
        width = self._vocabulary if among is None else len(among)
        found = np.empty((len(state), width), dtype=np.float64 if self._number == torch.float64 else np.float32)
        for rows, logits in self._logits(state.nodes):
            found[rows] = self._normalised(logits, chosen)
        return found

    def _source(self, source: str | Sequence[int] | None) -> Tensor | None:
        """The symbols of the source, if the model reads one."""
        if (source is None) != (self._encode_source is None):
            found, code = ("needs a", "source_missing") if source is None else ("reads no", "source_not_read")
            raise ModelError(
                f"This model {found} source.", do="Give source= to encoder–decoders, and to no other model.", code=code
            )
        if source is None or self._encode_source is None:
            return None
        ids = self._encode_source(source) if isinstance(source, str) else source
        if not len(ids):
            raise ModelError("The source is empty.", do="Give a source of at least one symbol.", code="empty_source")
        return self._tensor(np.array([ids]))

    def _normalised(self, logits: Tensor, among: Tensor | None) -> NDArray[Any]:
        """Log-probabilities over the whole vocabulary, of those asked for."""
        logits = logits.to(self._number)
        total = logits.logsumexp(1, keepdim=True)
        if not bool(total.isfinite().all()):
            raise ModelError(
                "The model gives logits that are not finite numbers.",
                do="Ask it in float32 if it was loaded in half precision; otherwise its weights are damaged.",
                code="logits_not_finite",
            )
        shown = logits if among is None else logits.index_select(1, among)
        return (shown - total).cpu().numpy()

    def _logits(self, nodes: Nodes) -> Iterator[tuple[Nodes, Tensor]]:
        """The logits of what follows the nodes, part by part, each with the places of its nodes."""
        for places in self._parts(nodes, np.arange(len(nodes)), apart=not self._walker.mixes):
            part = nodes[places]
            ancestors = self._tree.lines(self._tree.parent[part], self._walker.back(int(self._tree.depth[part[0]])))
            known = self._memory.holds(ancestors).all(axis=1) & (ancestors.shape[1] > 0)
            if known.any():
                past = self._memory.take(ancestors[known])
                yield places[known], self._walk(part[known], past, steps=1)
            for alike in self._parts(nodes, places[~known], apart=True):
                for few in _cut(alike, _SYMBOLS_AT_ONCE // self._steps(nodes[alike])):
                    yield few, self._walk(nodes[few], None, steps=self._steps(nodes[few]))

    def _walk(self, nodes: Nodes, past: Rows | None, *, steps: int) -> Tensor:
        """The logits after the last so many symbols of each node's path; what the model remembers is kept."""
        lines = self._tree.lines(nodes, steps)
        origin = self._origins[self._tree.origin[nodes[0]]]
        rows, logits = self._walker.walk(origin, past, self._tensor(self._tree.symbol[lines]))
        if rows:
            new, first = np.unique(lines[:, -rows[0].shape[1] :], return_index=True)
            absent = ~(self._memory.holds(new) | np.isin(new, self._passing))
            self._memory.keep(new[absent], tuple(_chosen(row.flatten(0, 1), first[absent]) for row in rows))
        return logits

    def _parts(self, nodes: Nodes, places: Nodes, *, apart: bool) -> Iterator[Nodes]:
        """Places of nodes that are computed at once; if `apart`, only nodes of one origin and depth."""
        if not len(places):
            return
        groups = [places]
        if apart:
            keys = self._tree.origin[nodes[places]].astype(np.int64) << 32 | self._tree.depth[nodes[places]]
            order = np.argsort(keys, kind="stable")
            groups = np.split(places[order], np.flatnonzero(np.diff(keys[order])) + 1)
        for group in groups:
            first = nodes[group[0]]
            bulk = self._walker.bulk(self._origins[self._tree.origin[first]], int(self._tree.depth[first]))
            yield from _cut(group, min(_SYMBOLS_AT_ONCE, _BYTES_AT_ONCE // bulk))

    def _steps(self, nodes: Nodes) -> int:
        """How many symbols are read from the origin to nodes that are equally deep."""
        return int(self._tree.depth[nodes[0]]) + 1

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        """Whole numbers where the model is."""
        return torch.from_numpy(values.astype(np.int64)).to(self._device)

    def _refuse_too_long(self, symbols: int) -> None:
        """Refuse a path that the model cannot read."""
        if self._longest is not None and symbols > self._longest:
            raise ModelError(
                f"{symbols} symbols are to be read; the model reads at most {self._longest}.",
                do="Use a shorter prefix, or a model with a longer context.",
                code="text_too_long",
            )


def _cut(places: Nodes, most: int) -> Iterator[Nodes]:
    """In pieces of at most so many, and at least one."""
    most = max(1, most)
    for begin in range(0, len(places), most):
        yield places[begin : begin + most]


def _chosen(rows: Tensor, places: Nodes) -> Tensor:
    """Some of the rows; copied only if they are not all."""
    if len(places) == len(rows) and bool((places == np.arange(len(rows))).all()):
        return rows
    return rows.index_select(0, torch.from_numpy(places).to(rows.device))
