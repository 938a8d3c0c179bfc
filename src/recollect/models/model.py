"""The two protocols of a model: scoring records, and querying it step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.checks import check_at_least, check_between
from recollect.corpora.record import Record
from recollect.digests import Json, digest
from recollect.errors import ModelError, PlanError
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.model_options import Kind as Kind  # noqa: PLC0414 - part of what this module offers
from recollect.models.model_options import Precision as Precision  # noqa: PLC0414
from recollect.models.tokens.token_spelling import Spelling

SCORING_REVISION = 2
"""Increased by hand whenever a change may alter a number: old answers are then computed again."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How a deployed model draws tokens: of which part of its distribution the mass is kept beside each score."""

    top_k: int = 40
    """It draws from so many of the likeliest tokens."""
    temperature: float = 1.0
    """It raises probabilities to the power of one over this before it draws."""

    def __post_init__(self) -> None:
        check_at_least(1, top_k=self.top_k)
        if not 0 < self.temperature < float("inf"):
            raise PlanError(
                f"A temperature of sampling is {self.temperature!r}.", do="Give one above 0.", code="invalid_setting"
            )


@dataclass(frozen=True, kw_only=True)
class Question:
    """How a model scores a record: all that a number depends on besides model and record."""

    window: int | None = None
    """Tokens read at once; None for as many as the model can."""
    patterns: int = 20
    """Masked models: how many random mask patterns per record (K in the paper; 20 in its authors' code)."""
    masked: float = 0.15
    """Masked models: the share of ordinary tokens hidden in each pattern, rounded up."""
    one_by_one: bool = False
    """Masked models: hide every token once, alone, instead of random patterns."""
    mask_seed: int = 0
    """Masked models: the seed of the patterns; the same for all models that are to be compared."""
    precision: Precision = "float32"
    chat_template: str | None = None
    """Causal models: the template (Jinja) by which conversations are rendered; None for the tokenizer's own."""
    sampling: Sampling = Sampling()
    """How the model is thought to be sampled from, once deployed."""

    def __post_init__(self) -> None:
        check_at_least(1, patterns=self.patterns)
        check_between(0, 1, masked=self.masked)
        if self.window is not None:
            check_at_least(2, window=self.window)


@runtime_checkable
class Model(Protocol):
    """Something that may be questioned."""

    @property
    def name(self) -> str:
        """How the user named it."""

    @property
    def kind(self) -> Kind:
        """What it predicts: next words, masked words, a target text, a label."""

    @property
    def digest(self) -> str:
        """The address of weights, configuration and tokenizer."""

    @property
    def question(self) -> Question:
        """The scoring options."""

    @property
    def access(self) -> Access:
        """The most it shows."""

    def answer(self, records: Sequence[Record]) -> Answers:
        """The scores of these records, in their order."""


def compute_address(model: Model) -> str:
    """Where the answers of this model to its question are kept: a digest of all that they depend on."""
    return digest(model.digest, model.kind, build_question_key(model.question), SCORING_REVISION)


def build_question_key(question: Question) -> dict[str, Json]:
    """The question to a model as addresses hash it: under frozen labels, whatever its fields are called."""
    template = question.chat_template
    chat = {} if template is None else {labels.QUESTION_CHAT_TEMPLATE: digest(template)}
    return {
        **chat,
        labels.QUESTION_WINDOW: question.window,
        labels.QUESTION_PATTERNS: question.patterns,
        labels.QUESTION_MASKED: question.masked,
        labels.QUESTION_ONE_BY_ONE: question.one_by_one,
        labels.QUESTION_MASK_SEED: question.mask_seed,
        labels.QUESTION_PRECISION: question.precision,
        labels.QUESTION_SAMPLING: [question.sampling.top_k, question.sampling.temperature],
    }


@dataclass(frozen=True)
class Frontier:
    """Nodes of the tree of continuations: handles that a Stepper gave out, one per row."""

    nodes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.nodes)

    def take(self, rows: NDArray[np.int64] | Sequence[int]) -> Frontier:
        """Some of the nodes that a model's stepper gave out, in this order."""
        return Frontier(self.nodes[np.asarray(rows, dtype=np.int64)])

    @staticmethod
    def concatenate(pieces: Sequence[Frontier]) -> Frontier:
        """The nodes that a model's stepper gave out in several frontiers as one."""
        return Frontier(np.concatenate([piece.nodes for piece in pieces]))


class Stepper(Protocol):
    """A model queried token by token: for extraction and exact ranks.

    Log-probabilities are natural, normalised over the whole vocabulary, and returned for the tokens in `among` only.
    """

    @property
    def spelling(self) -> Spelling:
        """How the model that is stepped through spells its tokens."""

    def encode(self, text: str) -> list[int]:
        """What every stepping model does: the tokens of a prefix as `start` reads it, with those before every text."""

    def start(self, prefix: str | Sequence[int], *, source: str | Sequence[int] | None = None) -> Frontier:
        """What every stepping model does: the one node after `prefix` (for seq2seq: of the target, given the source).

        Texts are read as the model reads them, with all that is around a text; tokens are taken as they are.
        """

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
        """What every stepping model does: append one token to each parent; the new nodes, and what may follow them.

        Args:
            state: Nodes that `start` and `step` gave out.
            parents: Rows of `state`; one may come several times.
            token_ids: One token per parent.
            among: The tokens whose log-probabilities are wanted; None for the whole vocabulary.
            least: How likely each of `among` must be to matter, as log-probabilities [children, among]; what is less
                likely may be NaN, where finding it out would cost a request. None if all matter.
            last: Which of the new nodes nobody will continue from: no state of them is kept.

        Returns:
            The new nodes, and log-probabilities of what may follow them [children, among].
        """

    def add_children(self, state: Frontier, parents: Sequence[int], token_ids: Sequence[int]) -> Frontier:
        """What every stepping model does: the new nodes that `step` would give, unread."""

    def score_next(
        self, state: Frontier, *, among: Sequence[int] | None = None, least: NDArray[np.float64] | None = None
    ) -> NDArray[Any]:
        """What every stepping model does: log-probabilities of what may follow these nodes [nodes, among]."""

    def forget(self) -> None:
        """What every stepping model does: drop the states of all nodes, which are computed anew from their paths."""


@runtime_checkable
class ReplyingStepper(Stepper, Protocol):
    """A stepper of a model that has a chat template."""

    def reply_to(self, user_turn: str) -> Stepper:
        """What a stepping model with a chat template does: step through replies to a turn of the user."""


def reply_to(stepper: Stepper, user_turn: str | None) -> Stepper:
    """A stepper whose texts are replies to what the user says; the same one without such a turn.

    Raises:
        ModelError: The model has no chat template.
    """
    if user_turn is None:
        return stepper
    if not isinstance(stepper, ReplyingStepper):
        raise ModelError(
            "This model holds no conversations: nothing in it renders what a user says.",
            do="Give a causal model of this machine, or leave the user's turn out.",
            code="no_chat",
        )
    return stepper.reply_to(user_turn)


@runtime_checkable
class Steppable(Model, Protocol):
    """A model whose access shows `steps`."""

    def stepper(self, *, memory: int | None = None) -> Stepper:
        """The model queried token by token, keeping at most so many bytes of what it remembers between steps."""


@runtime_checkable
class Embedder(Protocol):
    """A model that embeds texts, so that texts of similar meaning are close together."""

    def embed(self, records: Sequence[Record]) -> NDArray[np.float64]:
        """What an embedding model does: one row per record, the last layer at the token before every text."""


@runtime_checkable
class Perturber(Protocol):
    """What writes texts that say almost the same."""

    def neighbours(self, texts: Sequence[str], count: int) -> list[list[str]]:
        """What a perturbing model does: for each text up to `count` others that differ in one word or piece."""
