"""The secrets of a format as a tree of prefixes that a model scores, many nodes at a time.

A node is a prefix of a secret; its cost is the model's surprisal along the path there, in bits. A child's cost is known
once its parent has been read, so the last token of a secret costs no step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.audits.exposure.secrets import Secret
from recollect.audits.exposure.token_automaton import Flags, Integers, TokenAutomaton
from recollect.corpora.canaries.formats import Format
from recollect.errors import ModelError
from recollect.models.model import Frontier, Stepper, reply_to
from recollect.streams import stream

SLACK = 1e-4
"""Costs that differ by fewer bits are equal: single precision resolves no more, and a tie counts against the
finding."""
NODES_PER_SECRET = 2
"""About how many nodes a tree has for each of its secrets: in one that branches, no more are inner ones."""
_TRIALS = 64
"""Random secrets with which it is tried whether the model's tokens can spell the format."""


@dataclass(frozen=True, eq=False)
class PrefixNodes:
    """Nodes that have not been read yet: one entry each."""

    frontier: Integers
    """The parent, as the stepper numbers it."""
    parent: Integers
    """The parent, as the tree numbers it."""
    piece: Integers
    """The continuation from the parent to the node."""
    state: Integers
    """How much of the format is written there."""
    cost: NDArray[np.float64]
    """In bits, from the root."""

    def __len__(self) -> int:
        return len(self.cost)

    def take(self, rows: Integers | slice | Flags) -> PrefixNodes:
        """Some of them."""
        return PrefixNodes(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})

    @staticmethod
    def concatenate(several: Sequence[PrefixNodes]) -> PrefixNodes:
        """All of several."""
        names = [each.name for each in fields(PrefixNodes)]
        return PrefixNodes(**{name: np.concatenate([getattr(nodes, name) for nodes in several]) for name in names})


@dataclass(frozen=True, eq=False, kw_only=True)
class _ReadNodes:
    """Nodes that are being read: one entry each."""

    number: Integers
    """As the tree numbers them; −1 is the root."""
    state: Integers
    cost: NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class _WantedTokens:
    """The tokens that may follow some nodes in the format."""

    columns: Integers
    """In `TokenAutomaton.tokens`, in ascending order."""
    tokens: list[int]
    least: NDArray[np.float64]
    """How likely each must be to matter, as log-probabilities [nodes, tokens]; infinite where it cannot follow."""

    def get_least(self, *, shown_only: bool) -> NDArray[np.float64]:
        """The same; infinite everywhere if nothing matters that is not shown."""
        return np.full_like(self.least, np.inf) if shown_only else self.least


@dataclass(frozen=True)
class SecretCost:
    """How surprised the model is by one secret."""

    bits: float
    """Its log-perplexity: from the first token that reaches into a slot to the end of the format."""
    cost: float
    """From the root of the tree, by which secrets are compared; more than `bits` by the same for all."""


class PrefixTree:
    """The secrets of one format in the tokens of one model.

    The root is the last token before the secret that all secrets share, whatever they are filled with. Where a text can
    be written in several ways, only that counts in which the tokenizer writes it.
    """

    def __init__(self, stepper: Stepper, format: Format, *, source: str | None = None) -> None:
        """Find the root and read it.

        Args:
            stepper: The model.
            format: The format of the secrets.
            source: For encoder–decoders: the source to which the secret is the target.

        Raises:
            ModelError: The model's tokens cannot spell the format.
            PlanError: Two fillings of the format are the same to the model.
        """
        self.format, self._stepper = format, stepper
        self.automaton = TokenAutomaton(format, stepper.spelling)
        rng = stream(0, *labels.STREAM_EXPOSURE_ROOT, format.pattern)
        self._trials = [format.draw(rng) for _ in range(_TRIALS)]
        self._root, self._before, self._begin = self._find_root()
        self._start = stepper.start(self._root, source=source)
        self._history = PrefixHistory()
        self.steps = 1
        """How many nodes were read."""

    @property
    def size(self) -> int:
        """|R|."""
        return self.format.size

    def expand_root(self, limit: float = math.inf, *, shown_only: bool = False) -> tuple[PrefixNodes, PrefixNodes]:
        """The children of the root, as `expand` gives them."""
        root = _ReadNodes(number=np.array([-1]), state=np.array([self._begin]), cost=np.zeros(1))
        wanted = self._choose_tokens(root, limit)
        least = wanted.get_least(shown_only=shown_only)
        following = self._stepper.score_next(self._start, among=wanted.tokens, least=least)
        if shown_only:
            following = self._score_unless_shown(self._start, wanted, following)
        return self._build_children(self._start.nodes, root, wanted.columns, following, limit)

    def expand(
        self, nodes: PrefixNodes, limit: float = math.inf, *, shown_only: bool = False
    ) -> tuple[PrefixNodes, PrefixNodes]:
        """Expand nodes: their children that cost no more than the limit, first incomplete ones, then complete secrets.

        A child whose secret is complete but can be continued is among both.

        Args:
            nodes: Which are read.
            limit: The most that a child may cost.
            shown_only: Leave out children whose cost a server does not show with the most likely tokens, because each
                would cost a request; unless it shows no child at all.
        """
        numbers = self._history.append(nodes.parent, nodes.piece)
        read = _ReadNodes(number=numbers, state=nodes.state, cost=nodes.cost)
        wanted = self._choose_tokens(read, limit)
        frontier, following = self._stepper.step(
            Frontier(nodes.frontier),
            np.arange(len(nodes)),  # type: ignore[arg-type]
            self.automaton.piece_tokens[nodes.piece],  # type: ignore[arg-type]
            among=wanted.tokens,
            least=wanted.get_least(shown_only=shown_only),
            last=self.automaton.are_last(nodes.state),
        )
        if shown_only:
            following = self._score_unless_shown(frontier, wanted, following)
        self.steps += len(nodes)
        return self._build_children(frontier.nodes, read, wanted.columns, following, limit)

    def spell(self, parent: int, piece: int) -> str:
        """The text along the edge to a child."""
        path = [*self._history.trace(parent), piece]
        written = self._before + "".join(self.automaton.spellings[each] for each in path)
        return written.encode("latin-1").decode("utf-8", "replace")

    def spell_all(self, nodes: PrefixNodes) -> set[str]:
        """The different texts along the edges to some children."""
        edges = set(zip(nodes.parent.tolist(), nodes.piece.tolist(), strict=True))
        return {self.spell(parent, piece) for parent, piece in edges}

    def measure_shift(self) -> float:
        """By how many bits, at most, the cost of a secret exceeds its log-perplexity.

        That is what the known text after the root costs. Where there is any, one secret is scored for each way in which
        tokens write it.
        """
        ways = {self._list_known_pieces(text): text for text in self._trials}
        scores = [self.score(text) for pieces, text in ways.items() if pieces]
        return max((score.cost - score.bits for score in scores), default=0.0)

    def score(self, text: str) -> SecretCost:
        """How surprised the model is by a secret, given as a whole text of the format.

        Raises:
            ModelError: The model's tokens cannot spell it.
        """
        pieces = [piece for piece, _ in self._find_path(text)[len(self._root) - self._heads :]]
        border = len(self.automaton.format_automaton.format.known_prefix)
        node, cost, spelled, before = self._start, 0.0, len(self._before), 0.0
        for number, piece in enumerate(pieces):
            among = [int(self.automaton.piece_tokens[piece])]
            if number:
                last = self.automaton.piece_tokens[pieces[number - 1 : number]]
                node, following = self._stepper.step(node, [0], last.tolist(), among=among)
                self.steps += 1
            else:
                following = self._stepper.score_next(node, among=among)
            cost -= float(following[0, 0]) / math.log(2)
            spelled += len(self.automaton.spellings[piece])
            if spelled <= border:
                before = cost
        return SecretCost(bits=cost - before, cost=cost)

    def _choose_tokens(self, nodes: _ReadNodes, limit: float) -> _WantedTokens:
        """What may follow nodes, and how likely it must be for a child to cost no more than the limit."""
        groups = [(np.flatnonzero(nodes.state == state), state) for state in np.unique(nodes.state).tolist()]
        ways = [self.automaton.expand(state).columns for _, state in groups]
        columns = np.unique(np.concatenate(ways))
        least = np.full((len(nodes.cost), len(columns)), np.inf)
        for (rows, _), own in zip(groups, ways, strict=True):
            bound = (nodes.cost[rows] - limit) * math.log(2)
            least[np.ix_(rows, np.searchsorted(columns, own))] = bound[:, None]
        return _WantedTokens(columns=columns, tokens=[self.automaton.tokens[i] for i in columns], least=least)

    def _score_unless_shown(self, frontier: Frontier, wanted: _WantedTokens, shown: NDArray[Any]) -> NDArray[Any]:
        """Log-probabilities that were shown, or, if none was, those of all tokens that matter."""
        if len(wanted.tokens) and np.isnan(shown[wanted.least < np.inf]).all():
            return self._stepper.score_next(frontier, among=wanted.tokens, least=wanted.least)
        return shown

    def _build_children(
        self, frontier: Integers, nodes: _ReadNodes, columns: Integers, following: NDArray[Any], limit: float
    ) -> tuple[PrefixNodes, PrefixNodes]:
        """The children of nodes of which it is known what may follow, by column."""
        inner, complete = [], []
        for state in np.unique(nodes.state).tolist():
            transitions = self.automaton.expand(state)
            rows = np.flatnonzero(nodes.state == state)
            shown = following[np.ix_(rows, np.searchsorted(columns, transitions.columns))].astype(np.float64)
            summed = nodes.cost[rows, None] - shown / math.log(2)
            row, way = np.nonzero(summed <= limit)  # what is not known is NaN, and left out
            found = PrefixNodes(
                frontier=frontier[rows[row]],
                parent=nodes.number[rows[row]],
                piece=transitions.pieces[way],
                state=transitions.states[way],
                cost=summed[row, way],
            )
            inner.append(found.take(transitions.inner[way]))
            complete.append(found.take(transitions.complete[way]))
        return PrefixNodes.concatenate(inner), self._keep_canonical(PrefixNodes.concatenate(complete))

    def _keep_canonical(self, complete: PrefixNodes) -> PrefixNodes:
        """Those that are written as the tokenizer writes them."""
        if self.automaton.unambiguous or not len(complete):
            return complete
        tokens = self.automaton.piece_tokens
        kept = np.zeros(len(complete), dtype=np.bool_)
        for i, (parent, piece) in enumerate(zip(complete.parent.tolist(), complete.piece.tolist(), strict=True)):
            path = [*self._root, *tokens[[*self._history.trace(parent), piece]].tolist()]
            kept[i] = self._stepper.encode(self.spell(parent, piece)) == path
        return complete.take(kept)

    def _find_path(self, text: str) -> list[tuple[int, int]]:
        """The pieces and states that write a whole text, from its first character."""
        tokens = self._stepper.encode(text)
        path = self.automaton.find_path(tokens[self._heads :])
        if path is None:
            raise ModelError(
                f"The tokens of this model cannot spell secrets of the format {self.format.pattern!r}: "
                "some of its characters or words are not in its vocabulary.",
                do="Use a format that its vocabulary covers. Exposure can be estimated from draws: `recollect exposure "
                "--method sampled`.",
                code="format_not_spellable",
            )
        return path

    def _list_known_pieces(self, text: str) -> tuple[int, ...]:
        """The pieces of a secret from the root to the last one that ends before the first slot."""
        border, spelled, known = len(self.automaton.format_automaton.format.known_prefix), len(self._before), []
        for piece, _ in self._find_path(text)[len(self._root) - self._heads :]:
            spelled += len(self.automaton.spellings[piece])
            if spelled > border:
                break
            known.append(piece)
        return tuple(known)

    @property
    def _heads(self) -> int:
        """How many tokens are before every text."""
        return len(self._stepper.encode(""))

    def _find_root(self) -> tuple[list[int], str, int]:
        """The tokens that all secrets share, what they write, and the state they lead to."""
        every = [self._stepper.encode(text) for text in self._trials]
        paths = [self._find_path(text) for text in self._trials]
        before = self.automaton.format_automaton.format.known_prefix
        stop = len(before) if self.automaton.unambiguous else _find_last_word(before)
        shared, state, spelled = 0, self.automaton.start, 0
        for step, (piece, following) in enumerate(paths[0]):
            # the first token may be spelled with a space that the text does not have
            way = self.automaton.spellings[piece]
            width = len(way) if before.startswith(way, spelled) else len(way) - 1
            # a model that nothing is read before needs a first token to start from
            end = len(before) if not step and not self._heads else stop
            if spelled + width > end or any(len(path) <= step or path[step] != (piece, following) for path in paths):
                break
            shared, state, spelled = step + 1, following, spelled + width
        return every[0][: self._heads + shared], before[:spelled], state


def _find_last_word(before: str) -> int:
    """Where the last word of a prefix begins, with the space before it: no token reaches over that border."""
    return max(before.rstrip().rfind(" "), 0)


class PrefixHistory:
    """How every node that was read came about: its parent and its piece."""

    def __init__(self) -> None:
        self._table = np.empty((2, 1024), dtype=np.int64)
        self._size = 0

    def append(self, parents: Integers, pieces: Integers) -> Integers:
        """The numbers of new nodes; −1 is the root."""
        begin, self._size = self._size, self._size + len(parents)
        if self._size > self._table.shape[1]:
            self._table = np.concatenate([self._table, np.empty((2, self._size), dtype=np.int64)], axis=1)
        self._table[:, begin : self._size] = parents, pieces
        return np.arange(begin, self._size)

    def trace(self, node: int) -> list[int]:
        """The pieces from the root to a node."""
        path = []
        while node >= 0:
            node, piece = self._table[:, node].tolist()
            path.append(piece)
        return path[::-1]


def build_secret_tree(open_stepper: Callable[[], Stepper] | None, secret: Secret) -> PrefixTree:
    """The tree of prefixes of a secret's format, with the stepper that is opened for it.

    Raises:
        ModelError: There is none.
    """
    if open_stepper is None:
        raise ModelError(
            "This model does not show its probabilities step by step.", do="Use the sampled method.", code="no_steps"
        )
    if secret.source_format is not None:
        raise ModelError(
            "The secret occurs in source and target, so each candidate has a source of its own.",
            do="Use the sampled method.",
            code="secret_in_source",
        )
    return PrefixTree(reply_to(open_stepper(), secret.user_turn), secret.parsed, source=secret.source)
