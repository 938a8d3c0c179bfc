"""The fluency audit: does the model predict what these people write?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.common.ground_truth import find_members
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.verb import CANDIDATES, CONTROL_RECORDS, TARGET_MODEL, Verb
from recollect.audits.workspace import NO_WORKSPACE, Workspace
from recollect.checks import check_between
from recollect.results.presentation import Presentation, TableView
from recollect.results.result import Result
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.signals.scores import Scores
from recollect.stats.auc import auc
from recollect_fluency.signal import TopShare


@dataclass(frozen=True, kw_only=True)
class FluencyAudit:
    """Whether a model predicts the words of the audited people more often than those of controls."""

    top_k: int = 1
    """A token counts as predicted if it is among the model's top k."""
    confidence: float = 0.95
    """The confidence level of all intervals."""

    name: ClassVar[str] = "fluency"
    question: ClassVar[str] = "Does the model predict what these people write?"
    paper: ClassVar[str] = "an example"
    verb: ClassVar[Verb] = Verb(
        name="fluency",
        summary="Find out whether a model predicts the words of some people more often than those of others.",
        guide="`recollect fluency my-model people.jsonl --controls others.jsonl --out run`",
        roles={TARGET: TARGET_MODEL, AUDITED: CANDIDATES, CONTROLS: CONTROL_RECORDS},
        members=True,
    )
    presentation: ClassVar[Presentation] = Presentation(
        figures="recollect_fluency.figures:draw",
        tables={
            "people": TableView(
                caption="People, those whose words are predicted most often first",
                columns={"user": "Person", "score": "Tokens predicted (share)"},
                first="score",
            )
        },
        drawn=frozenset({"controls"}),
        listed="people",
        annex=("inference",),
    )

    def __post_init__(self) -> None:
        TopShare(top_k=self.top_k)
        check_between(0, 1, confidence=self.confidence)

    def needs(self, evidence: Evidence) -> Needs:
        """Ranked tokens of both corpora. Called first with no evidence at all, then round by round."""
        return Needs(
            access=TopShare(top_k=self.top_k).needs,
            given=frozenset({TARGET, AUDITED, CONTROLS}),
            score=frozenset({(TARGET, AUDITED), (TARGET, CONTROLS)}),
        )

    def run(self, evidence: Evidence, rng: np.random.Generator, workspace: Workspace = NO_WORKSPACE) -> Result:
        """How much more often the audited people are predicted, and members among them where they are known."""
        signal, builder = TopShare(top_k=self.top_k), ResultBuilder(self)
        people, controls = (signal.score(evidence, corpus).average_by_user() for corpus in (AUDITED, CONTROLS))
        builder.tables |= {"people": people.to_table(), "controls": controls.to_table()}
        finding = builder.try_estimate(
            "auc",
            lambda: auc(people, controls, confidence=self.confidence),
            unit="probability",
            reading="How often one of the audited people is predicted better than a control; 0.5 under the null.",
        )
        self._evaluate(builder, people, evidence)
        if finding is None or finding.interval is None:
            verdict = "Cannot be determined from this data: there are too few people."
            return builder.build(verdict=verdict, outcome="inconclusive", code="too_few_people")
        found = finding.interval[0] is not None and finding.interval[0] > 0.5
        verdict = f"The model predicts these people {'better' if found else 'no better'} than it predicts others."
        return builder.build(verdict=verdict, outcome="found" if found else "not_found")

    def _evaluate(self, builder: ResultBuilder, people: Scores, evidence: Evidence) -> None:
        """How well members are told from non-members, where it is known who they are."""
        known = find_members(evidence)
        if known is None:
            return
        truth = known.truth_by_user(evidence.corpora[AUDITED])
        inside, outside = (
            people.select_users([user for user, member in truth.items() if member is wanted])
            for wanted in (True, False)
        )
        builder.try_estimate(
            "members_auc",
            lambda: auc(inside, outside, confidence=self.confidence),
            unit="probability",
            reading="How often a member is predicted better than a non-member.",
        )
