"""An audit: it declares what it needs, round by round, and then decides. It neither trains nor schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from recollect.audits.workspace import NO_WORKSPACE, Workspace
from recollect.checks import document_fields
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.models.access import Access
from recollect.results.result import Result
from recollect.signals.evidence import Evidence


@document_fields
@dataclass(frozen=True, kw_only=True)
class Needs:
    """What an audit needs beyond its own settings.

    Needs are declared in full in every round: what is already in the evidence may be named again.
    """

    access: Mapping[str, Access] = field(default_factory=dict)
    """The access that each model must offer, by role. Declared in round 0, before any computation."""
    given: frozenset[str] = frozenset()
    """The roles of models, corpora and files that the user has to give. Declared in round 0."""
    unless_members: frozenset[str] = frozenset()
    """Those of them that may be missing where both members and non-members are known. Declared in round 0."""
    advice: str = ""
    """What to do if one of them is missing, in one sentence for the user; empty if giving it is all there is to do.
    Declared in round 0."""
    fleet: Mapping[str, int] = field(default_factory=dict)
    """How many models of each role are going to be trained, if none are given: {"shadow": 10}. Declared in round 0."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """Roles of the fleet that need no training if there is no recipe, and the role that replaces each:
    {"shadow": "reference"}. Declared in round 0."""
    later: str = ""
    """What later rounds may need that is not known yet, in one sentence for the user. Declared in round 0."""
    corpora: Mapping[str, Corpus] = field(default_factory=dict)
    """Corpora derived from others, by role: the queries chosen among a person's texts."""
    train: Mapping[str, Cohorts] = field(default_factory=dict)
    """Models to be trained, by the role of their training corpus; the cohorts name models by role."""
    score: frozenset[tuple[str, str]] = frozenset()
    """Which model is to score which corpus, by role."""
    most_steps: int = 0
    """How many steps of the target, each of one token, a search or an exact count may take at most after scoring."""


class Audit(Protocol):
    """The interface of every audit: a frozen dataclass of settings, whose constructor does no work."""

    @property
    def name(self) -> str:
        """The name that plans, verbs and results use."""

    @property
    def question(self) -> str:
        """The question it answers, in the words of its user."""

    @property
    def paper(self) -> str:
        """The paper that its method is taken from."""

    def needs(self, evidence: Evidence) -> Needs:
        """What is needed, given the evidence so far; pure, and first called with no evidence at all.

        Random draws come from `stream(evidence.seed, …)`. It may refuse evidence: nothing was trained or scored yet.
        """

    def run(self, evidence: Evidence, rng: np.random.Generator, workspace: Workspace = NO_WORKSPACE) -> Result:
        """The result, from evidence that contains everything that was needed.

        Args:
            evidence: Everything that `needs` declared; its models may be queried step by step.
            rng: The only source of randomness.
            workspace: A folder to resume from after a kill, and a progress callback; it changes no number.
        """
