"""Searches and neighbours computed by workers: a frontier, or many texts, are cut into chunks that a backend maps.

What a chunk gives depends on what is in it alone: neither the number of workers nor which of them has it moves a
number. Each worker loads the model once and keeps it while the backend keeps the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.record import Record
from recollect.execution.backend import Backend, Failure
from recollect.models.access import Access
from recollect.models.answer_store.scoring import Source, load_source
from recollect.models.answers import Answers
from recollect.models.model import Frontier, Kind, Model, Perturber, Question, Steppable, Stepper, reply_to
from recollect.models.stepping.node_tree import NodeTree
from recollect.models.tokens.token_spelling import Spelling

MAX_NODES: Final = 256
"""Nodes of a chunk: enough for a batch, and few enough that several workers share a frontier."""
MAX_NUMBERS: Final = 1 << 20
"""Log-probabilities that a chunk may give back, because they travel."""
MAX_TEXTS: Final = 64
"""Texts of a chunk."""


def _map_chunks(backend: Backend, work: Callable[[Any], Any], chunks: Iterable[Any]) -> list[Any]:
    """What workers give for all chunks, in order; the first failure is raised."""
    values = []
    for outcome in backend.map(work, chunks):
        if isinstance(outcome, Failure):
            outcome.error.add_note(outcome.traceback)
            raise outcome.error
        values.append(outcome.value)
    return values


@dataclass(frozen=True, kw_only=True)
class _Chunk:
    """Nodes of one origin: the tokens that lead from there to each."""

    prefix: tuple[int, ...]
    source: str | tuple[int, ...] | None
    paths: tuple[tuple[int, ...], ...]
    among: tuple[int, ...] | None


@dataclass(frozen=True)
class _FrontierReader:
    """Scores what may follow the nodes of a chunk; a worker keeps one, and so its model."""

    source: Source

    @cached_property
    def model(self) -> Steppable:
        """The model, loaded when it is first needed."""
        model = load_source(self.source)
        assert isinstance(model, Steppable)  # noqa: S101 - the driver has looked at its own copy
        return model

    def __call__(self, chunk: _Chunk) -> NDArray[Any]:
        """Log-probabilities of what may follow [nodes, among]; ancestors that nodes share are read once."""
        stepper = self.model.stepper()
        root = stepper.start(chunk.prefix, source=chunk.source)
        nodes: dict[tuple[int, ...], int] = {(): int(root.nodes[0])}
        for depth in range(1, max(map(len, chunk.paths)) + 1):
            new = sorted({path[:depth] for path in chunk.paths if len(path) >= depth})
            parents = Frontier(np.array([nodes[path[:-1]] for path in new]))
            children = stepper.add_children(parents, range(len(new)), [path[-1] for path in new])
            nodes |= zip(new, children.nodes.tolist(), strict=True)
            inner = sorted({path[:depth] for path in chunk.paths if len(path) > depth})
            if inner:
                # what is remembered of these makes all that follow cost one token each
                stepper.score_next(Frontier(np.array([nodes[path] for path in inner])), among=[0])
        return stepper.score_next(Frontier(np.array([nodes[path] for path in chunk.paths])), among=chunk.among)


class WorkerStepper:
    """The `Stepper` of a model whose frontiers are read by workers."""

    def __init__(self, stepper: Stepper, source: Source, backend: Backend) -> None:
        """Nothing is loaded or sent yet.

        Args:
            stepper: The model step by step in this process, which only spells and encodes.
            source: How a worker gets the model.
            backend: Whose workers read; one that keeps them from one frontier to the next.
        """
        self._stepper, self._source, self._backend = stepper, source, backend
        self._tree = NodeTree()
        self._origins: list[tuple[tuple[int, ...], str | tuple[int, ...] | None]] = []

    @property
    def spelling(self) -> Spelling:
        """How its tokens are spelled."""
        return self._stepper.spelling

    def encode(self, text: str) -> list[int]:
        """The tokens of a prefix as `start` reads it."""
        return self._stepper.encode(text)

    def reply_to(self, user_turn: str) -> WorkerStepper:
        """The same stepper, whose texts are what the assistant replies to a turn of the user.

        Raises:
            ModelError: The model has no chat template.
        """
        return WorkerStepper(reply_to(self._stepper, user_turn), self._source, self._backend)

    def start(self, prefix: str | Sequence[int], *, source: str | Sequence[int] | None = None) -> Frontier:
        """The one node that is after `prefix`; read when its continuations are."""
        ids = tuple(self.encode(prefix) if isinstance(prefix, str) else prefix)
        self._origins.append((ids, source if source is None or isinstance(source, str) else tuple(source)))
        return Frontier(self._tree.add_root(ids[-1] if ids else 0, len(self._origins) - 1))

    def add_children(self, state: Frontier, parents: Sequence[int], token_ids: Sequence[int]) -> Frontier:
        """The new nodes that `step` would give, unread."""
        above = state.nodes[np.asarray(parents, dtype=np.int64)]
        return Frontier(self._tree.add_children(above, np.asarray(token_ids, dtype=np.int64)))

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
        """Append one token to each parent: the new nodes, and what may follow them [children, among]."""
        children = self.add_children(state, parents, token_ids)
        return children, self.score_next(children, among=among)

    def score_next(
        self, state: Frontier, *, among: Sequence[int] | None = None, least: NDArray[np.float64] | None = None
    ) -> NDArray[Any]:
        """Log-probabilities of what may follow these nodes [nodes, among]; workers share them.

        Raises:
            ModelError: A path is longer than the model reads, or its numbers are not finite.
        """
        width = len(self.spelling.tokens) if among is None else len(among)
        size = max(1, min(MAX_NODES, MAX_NUMBERS // max(1, width)))
        # nodes with the same parent come together: what they share is read once
        order = np.lexsort((self._tree.parent[state.nodes], self._tree.origin[state.nodes]))
        cuts = np.flatnonzero(np.diff(self._tree.origin[state.nodes[order]])) + 1
        places = [part[i : i + size] for part in np.split(order, cuts) for i in range(0, len(part), size)]
        chunks = [self._describe(state.nodes[each], among) for each in places if len(each)]
        found = _map_chunks(self._backend, _FrontierReader(self._source), chunks)
        rows = np.concatenate(found)
        scored = np.empty_like(rows)
        scored[np.concatenate(places)] = rows
        return scored

    def forget(self) -> None:
        """Nothing: workers remember no node."""

    def _describe(self, nodes: NDArray[np.int64], among: Sequence[int] | None) -> _Chunk:
        """Nodes of one origin as they travel."""
        prefix, source = self._origins[self._tree.origin[nodes[0]]]
        depths = self._tree.depth[nodes].tolist()
        tokens = self._tree.token[self._tree.get_paths(nodes, max(depths))].tolist()
        return _Chunk(
            prefix=prefix,
            source=source,
            paths=tuple(tuple(line[len(line) - depth :]) for line, depth in zip(tokens, depths, strict=True)),
            among=None if among is None else tuple(int(token) for token in among),
        )


@dataclass(frozen=True)
class _NeighbourWriter:
    """Writes the neighbours of some texts; a worker keeps one, and so its model."""

    source: Source
    count: int

    @cached_property
    def model(self) -> Perturber:
        """The model, loaded when it is first needed."""
        model: object = load_source(self.source)
        assert isinstance(model, Perturber)  # noqa: S101 - the driver has looked at its own copy
        return model

    def __call__(self, texts: tuple[str, ...]) -> list[list[str]]:
        """For each text up to so many others."""
        return self.model.neighbours(texts, self.count)


@dataclass(frozen=True, kw_only=True)
class WorkerPerturber:
    """A model whose neighbours of texts are written by workers."""

    model: Model
    source: Source
    backend: Backend

    @property
    def name(self) -> str:
        """How the user named it."""
        return self.model.name

    @property
    def kind(self) -> Kind:
        """What it predicts."""
        return self.model.kind

    @property
    def digest(self) -> str:
        """The address of weights, configuration and tokenizer."""
        return self.model.digest

    @property
    def question(self) -> Question:
        """The scoring options."""
        return self.model.question

    @property
    def access(self) -> Access:
        """The most it shows."""
        return self.model.access

    def answer(self, records: Sequence[Record]) -> Answers:
        """The scores of these records, in their order, from this process."""
        return self.model.answer(records)

    def neighbours(self, texts: Sequence[str], count: int) -> list[list[str]]:
        """For each text up to `count` others that differ from it in one word or piece; the same in every order."""
        chunks = [tuple(texts[i : i + MAX_TEXTS]) for i in range(0, len(texts), MAX_TEXTS)]
        written = _map_chunks(self.backend, _NeighbourWriter(self.source, count), chunks)
        return [each for chunk in written for each in chunk]
