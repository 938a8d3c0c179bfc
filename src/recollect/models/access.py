"""Access: what a model outputs, in four fields that are compared one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from recollect.errors import AccessError, PlanError

Logprob = Literal["none", "shown", "any"]
_ORDER: dict[Logprob, int] = {"none": 0, "shown": 1, "any": 2}
_STEPS = "answers step by step"


@dataclass(frozen=True, kw_only=True)
class Access:
    """What a model outputs, or what an audit needs.

    >>> Access.PROBABILITIES.covers(Access.RANKS)
    True
    >>> Access.top(5).covers(Access.top(10))
    False
    """

    k: int | None
    """How many ranked tokens the model outputs; None for all of them."""
    logprob: Logprob
    """For which tokens the model outputs the log-probability."""
    distribution: bool
    """Whether entropy and logprob_std of the whole predictive distribution are available."""
    steps: bool
    """Whether the model can be queried step by step (the Stepper protocol)."""

    LABEL: ClassVar[Access]
    """Only the most likely token."""
    RANKS: ClassVar[Access]
    """The full ranking, no numbers."""
    PROBABILITIES: ClassVar[Access]
    """Everything about the predictive distribution."""
    FULL: ClassVar[Access]
    """Everything, and step by step: a model on this machine."""

    def __post_init__(self) -> None:
        if self.k is not None and self.k < 1:
            raise PlanError(
                f"A model cannot output the top {self.k} tokens.", do="Choose k of 1 or more.", code="k_below_one"
            )

    @classmethod
    def top(cls, k: int) -> Access:
        """The top k tokens in order, no probabilities."""
        return cls(k=k, logprob="none", distribution=False, steps=False)

    def covers(self, needed: Access) -> bool:
        """Whether this access includes everything that is needed."""
        return not self.list_missing(needed)

    def list_missing(self, needed: Access) -> list[str]:
        """What is needed and not shown, in words; empty if nothing is missing."""
        gaps = []
        if self.k is not None and (needed.k is None or needed.k > self.k):
            gaps.append("the rank of every token" if needed.k is None else f"the top {needed.k} tokens")
        if _ORDER[needed.logprob] > _ORDER[self.logprob]:
            gaps.append("log-probabilities" + (" of any token" if needed.logprob == "any" else " of the top tokens"))
        if needed.distribution and not self.distribution:
            gaps.append("the whole predictive distribution (entropy, logprob_std)")
        if needed.steps and not self.steps:
            gaps.append(_STEPS)
        return gaps

    def lower(self, to: Access) -> Access:
        """The weaker of both in every field: access can only be lowered."""
        shown = [k for k in (self.k, to.k) if k is not None]
        return Access(
            k=min(shown) if shown else None,
            logprob=min(self.logprob, to.logprob, key=_ORDER.__getitem__),
            distribution=self.distribution and to.distribution,
            steps=self.steps and to.steps,
        )

    def __str__(self) -> str:
        ranks = "all tokens ranked" if self.k is None else f"the top {self.k}" if self.k > 1 else "the top token"
        numbers = {"none": "no probabilities", "shown": "log-probabilities of those", "any": "any log-probability"}
        extras = ["entropy and logprob_std"] * self.distribution + ["step by step"] * self.steps
        return ", ".join([ranks, numbers[self.logprob], *extras])


Access.LABEL = Access.top(1)
Access.RANKS = Access(k=None, logprob="none", distribution=False, steps=False)
Access.PROBABILITIES = Access(k=None, logprob="any", distribution=True, steps=False)
Access.FULL = Access(k=None, logprob="any", distribution=True, steps=True)


class HasAccess(Protocol):
    """What `require` must know of a model."""

    @property
    def name(self) -> str:
        """How the user named it."""

    @property
    def access(self) -> Access:
        """Its full access."""


def require(needed: Access, model: HasAccess, *, audit: str, instead: str = "") -> None:
    """Refuse a model with too little access; to be called before any computation.

    Args:
        needed: What the audit or signal needs.
        model: The model it was given.
        audit: Who needs it, as the user named it: "membership with signal 'loss'".
        instead: What would work with this model; a better model is always named.

    Raises:
        AccessError: Something is missing; the message names the audit, the need, the model and what would work.
    """
    gaps = model.access.list_missing(needed)
    if gaps == [_STEPS]:
        instead = instead or getattr(model, "how_to_step", "")
    if gaps:
        better = f"give a model that outputs {' and '.join(gaps)}."
        raise AccessError(
            f"{audit} needs {' and '.join(gaps)}; model {model.name!r} outputs {model.access}.",
            do=f"{instead.rstrip('.')}, or {better}" if instead else better.capitalize(),
            code="access_missing",
        )
