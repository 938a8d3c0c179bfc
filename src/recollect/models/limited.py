"""Models made weaker: how a deployment that shows less is simulated, and how stored answers are read as it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from recollect.checks import check_between
from recollect.corpora.record import Record
from recollect.errors import AccessError
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.model import Kind, Model, Question


@dataclass(frozen=True)
class Limited:
    """A model that shows less than it could; it has no stepper, because a deployment has none."""

    model: Model
    access: Access
    """The reduced access."""
    min_probability: float | None = None
    """The probability below which it shows nothing; None if it shows all it may."""

    @property
    def name(self) -> str:
        """How the user named the model; what is left of it is its access."""
        return self.model.name

    @property
    def kind(self) -> Kind:
        """What it predicts."""
        return self.model.kind

    @property
    def digest(self) -> str:
        """The address of the model itself, whose store serves all its limited versions."""
        return self.model.digest

    @property
    def revision(self) -> str | None:
        """The commit of the hub that the model was resolved to, if it is from there."""
        return getattr(self.model, "revision", None)

    @property
    def question(self) -> Question:
        """The scoring options."""
        return self.model.question

    def answer(self, records: Sequence[Record]) -> Answers:
        """The scores of these records, at the reduced access."""
        return weaken(self.model.answer(records), self.access, min_probability=self.min_probability)


def limited(model: Model, access: Access, *, min_probability: float | None = None) -> Limited:
    """The model, showing at most this: fields are only ever lowered.

    Args:
        model: Any model, itself limited or not.
        access: The most it may show; where the model shows less already, it stays so.
        min_probability: A probability below which a token is not shown at all, as in keyboards that suggest nothing
            rather than something unlikely (Inan et al. 2021, footnote 3).

    Raises:
        AccessError: `min_probability` is given for a model whose probabilities are not known.
    """
    if min_probability is not None:
        check_between(0, 1, least=min_probability)
        if model.access.logprob == "none":
            raise AccessError(
                f"A limit on probability cannot be set on model {model.name!r}, which shows {model.access}.",
                do="Leave it out, or limit the model as it was before its probabilities were taken away.",
                code="probabilities_unknown",
            )
    shown = replace(model.access.lower(access), steps=False)
    if isinstance(model, Limited):
        return Limited(
            model.model,
            shown,
            max((p for p in (model.min_probability, min_probability) if p is not None), default=None),
        )
    return Limited(model, shown, min_probability)


def weaken(answers: Answers, access: Access, *, min_probability: float | None = None) -> Answers:
    """The answers as a limited model with this access would have given them; the stored ones are left as they are.

    A token that is not shown has rank 0. Its log-probability is missing too unless that of any token is shown.

    Args:
        answers: What a model showed that shows at least as much.
        access: What is shown.
        min_probability: A probability below which nothing is shown.
    """
    hidden = np.zeros(answers.rows, dtype=np.bool_) if access.k is None else answers.rank > access.k
    below_minimum = np.zeros(answers.rows, dtype=np.bool_)
    if min_probability is not None and answers.logprob is not None:
        # not "<": a log-probability that is missing was not shown before either
        below_minimum = ~(answers.logprob >= math.log(min_probability))
    rank = np.where(hidden | below_minimum, 0, answers.rank).astype(np.int32)
    logprob = None if access.logprob == "none" else answers.logprob
    if logprob is not None:
        missing = below_minimum if access.logprob == "any" else rank == 0
        logprob = np.where(missing, np.nan, logprob).astype(logprob.dtype)
    if access.distribution:
        return replace(answers, rank=rank, logprob=logprob)
    return replace(answers, rank=rank, logprob=logprob, entropy=None, logprob_std=None, kept_mass=None, logits=None)
