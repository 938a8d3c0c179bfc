"""An audit: it says what it needs, round by round, and then judges. It neither trains nor schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from recollect.audits.workspace import NO_WORKSPACE, Workspace
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.models.access import Access
from recollect.results.result import Result
from recollect.signals.evidence import Evidence


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What an audit needs beyond what every reader of its settings could give it.

    Needs are told whole in every round: what is already in the evidence may be named again.
    """

    access: Mapping[str, Access] = field(default_factory=dict)
    """What each model must show, by its part. Told in round 0, before anything costs anything."""
    given: frozenset[str] = frozenset()
    """Models, corpora and files, by their parts, that the user has to give. Told in round 0."""
    unless_members: frozenset[str] = frozenset()
    """Those of them that may be missing where both members and non-members are known. Told in round 0."""
    advice: str = ""
    """What to do if one of them is missing, in one sentence for the user; empty where to give it is all there is to do.
    Told in round 0."""
    fleet: Mapping[str, int] = field(default_factory=dict)
    """How many models of each part are going to be trained, if they are not given: {"shadow": 10}. Told in round 0."""
    instead: Mapping[str, str] = field(default_factory=dict)
    """Models of the fleet that nobody need train where there is no recipe, by the role that then does instead:
    {"shadow": "reference"}. Told in round 0."""
    later: str = ""
    """What later rounds may need that cannot be told yet, in one sentence for the user. Told in round 0."""
    corpora: Mapping[str, Corpus] = field(default_factory=dict)
    """Corpora that follow from others, by the parts they will play: the queries chosen among a person's texts."""
    train: Mapping[str, Cohorts] = field(default_factory=dict)
    """Models to be trained, by the part of the corpus that trains them; the cohorts name models by their parts."""
    score: frozenset[tuple[str, str]] = frozenset()
    """Which model is to be asked about which corpus, by their parts."""


class Audit(Protocol):
    """What every audit is: a frozen dataclass of settings, whose constructor does no work."""

    @property
    def name(self) -> str:
        """The name that plans, verbs and results use."""

    @property
    def question(self) -> str:
        """The question it answers, as the person who asks it would put it."""

    @property
    def paper(self) -> str:
        """Where its method comes from."""

    def needs(self, evidence: Evidence) -> Needs:
        """What is needed, as far as the evidence so far tells; pure, and first called with no evidence at all.

        What it draws comes from `stream(evidence.seed, …)`. It may refuse evidence: nothing was trained or asked yet.
        """

    def run(self, evidence: Evidence, rng: np.random.Generator, workspace: Workspace = NO_WORKSPACE) -> Result:
        """The result, from evidence that holds all that was needed.

        Args:
            evidence: All that `needs` asked for; its models may be asked step by step.
            rng: The only source of chance.
            workspace: A folder to go on from after a kill, and somebody to tell how far it is; it moves no number.
        """
