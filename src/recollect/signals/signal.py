"""A signal: answers in, one score per record out. Higher always means more evidence of training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from recollect.corpora.corpus import Corpus
from recollect.models.access import Access, require
from recollect.models.model import Kind
from recollect.signals.evidence import AUDITED, Evidence
from recollect.signals.scores import Scores


class Signal(Protocol):
    """What every signal is: settings in its fields, no work in its constructor."""

    @property
    def name(self) -> str:
        """The name that plans and options use."""

    @property
    def paper(self) -> str:
        """Where it comes from."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of models whose answers it can read."""

    @property
    def needs(self) -> Mapping[str, Access]:
        """The access that each model must offer, by role: "target", "reference", or "shadow" for all shadows."""

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        """One score per record of a corpus; records of which nothing was predicted have none.

        Args:
            evidence: Holds the answers of every model in `needs` about this corpus.
            corpus: The role of the corpus.
        """


@runtime_checkable
class DerivingSignal(Protocol):
    """A signal that also scores records derived from the given ones, such as lowercased texts."""

    @property
    def name(self) -> str:
        """The name that plans and options use."""

    def derive_corpus(self, evidence: Evidence, corpus: str) -> Corpus:
        """The derived records that are scored besides those of a corpus; pure, and read anew in every pass."""


def derived_role(signal: DerivingSignal, corpus: str) -> str:
    """The role of the corpus that a signal derives from another.

    >>> from recollect.signals.lowercase import Lowercase
    >>> derived_role(Lowercase(), "controls")
    'controls-lowercase'
    """
    return f"{corpus}-{signal.name}"


def derive_corpora(signal: Signal, evidence: Evidence, corpora: Iterable[str]) -> dict[str, Corpus]:
    """What a signal derives from some corpora, by role; nothing, for most signals."""
    if not isinstance(signal, DerivingSignal):
        return {}
    return {derived_role(signal, corpus): signal.derive_corpus(evidence, corpus) for corpus in corpora}


def compute_scores(signal: Signal, evidence: Evidence, corpus: str = AUDITED) -> Scores:
    """The scores of a corpus, once it is clear that every model shows what the signal needs.

    Raises:
        AccessError: Some model does not show enough; nothing was computed.
    """
    require_access(f"signal {signal.name!r}", signal.needs, evidence)
    return signal.score(evidence, corpus)


def require_access(audit: str, needs: Mapping[str, Access], evidence: Evidence, *, instead: str = "") -> None:
    """Refuse evidence in which some model does not show what the signal or audit needs; costs nothing.

    Args:
        audit: Who needs it, for the message.
        needs: The access that each model must offer, by role.
        evidence: The models; those that are not there yet are not checked.
        instead: What would work with a weaker model.

    Raises:
        AccessError: Some model does not show enough.
    """
    for role, access in needs.items():
        for name in evidence.models_of_role(role):
            require(access, evidence.models[name], audit=audit, instead=instead)
