"""The contract checks themselves: they pass what keeps the contract and refuse what breaks it, each in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pytest

from recollect.audits.audit import Needs
from recollect.audits.verb import CANDIDATES, TARGET_MODEL, Role, Verb
from recollect.audits.workspace import NO_WORKSPACE, Workspace
from recollect.errors import NotEnoughData
from recollect.models.access import Access
from recollect.results.presentation import Presentation
from recollect.results.result import Finding, Result, Skipped
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.signals.loss import Loss
from recollect.signals.scores import Scores
from recollect.signals.signal import compute_scores
from recollect.stats.auc import auc
from recollect.testing.contracts import BrokenContract, check_audit, check_signal
from recollect.testing.world import World

RANKS: Mapping[str, Access] = {TARGET: Access.LABEL}


@dataclass(frozen=True)
class Toy:
    """A signal that is right but for one change."""

    change: str = ""
    counter: list[int] = field(default_factory=lambda: [0])
    name: str = "toy"
    paper: str = "Toy et al."
    kinds: tuple[str, ...] = ("causal",)
    needs: Mapping[str, Access] = field(default_factory=lambda: dict(Loss.needs))

    def score(self, evidence: Evidence, corpus: str) -> Scores:
        self.counter[0] += 1
        scores = Loss().score(evidence, AUDITED if self.change == "one corpus" else corpus)
        return getattr(self, self.change.replace(" ", "_"), lambda scores, evidence: scores)(scores, evidence)

    def reversed(self, scores: Scores, evidence: Evidence) -> Scores:
        return scores.with_values(-scores.values)

    def constant(self, scores: Scores, evidence: Evidence) -> Scores:
        return scores.with_values(np.zeros(len(scores)))

    def knows_names(self, scores: Scores, evidence: Evidence) -> Scores:
        return scores.with_values([float(user.startswith("member")) for user in scores.users])

    def by_place(self, scores: Scores, evidence: Evidence) -> Scores:
        return scores.with_values(scores.values + 1e-3 * np.arange(len(scores)))

    def by_block(self, scores: Scores, evidence: Evidence) -> Scores:
        return scores.with_values(scores.values + 1e-3 * evidence.answers[TARGET, AUDITED].block)

    def by_chance(self, scores: Scores, evidence: Evidence) -> Scores:
        return scores.with_values(scores.values + 1e-3 * self.counter[0])

    def out_of_order(self, scores: Scores, evidence: Evidence) -> Scores:
        return Scores(scores.records, scores.users[::-1], scores.values)

    def forgetful(self, scores: Scores, evidence: Evidence) -> Scores:
        return scores.select(scores.records[1:])

    def infinite(self, scores: Scores, evidence: Evidence) -> Scores:
        return scores.with_values([np.inf, *scores.values[1:]])

    def more_with_more(self, scores: Scores, evidence: Evidence) -> Scores:
        return scores.with_values(scores.values + evidence.answers[TARGET, AUDITED].access.distribution)


def test_a_signal_that_keeps_the_contract_passes():
    check_signal(Toy())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("reversed", "what was memorised scores higher"),
        ("constant", "what was memorised scores higher"),
        ("knows names", "a null target gives AUC 0.5"),
        ("by place", "scores stay the same with {'backwards': True}"),
        ("by block", "scores stay the same with {'block': 1}"),
        ("by chance", "scores stay the same with nothing changed"),
        ("out of order", "under its own id and owner"),
        ("forgetful", "under its own id and owner"),
        ("infinite", "scores are finite numbers"),
        ("one corpus", "it scores the corpus that it is given"),
        ("more with more", "is enough for the same scores"),
    ],
)
def test_a_signal_that_breaks_the_contract_is_refused_by_what_it_broke(change, complaint):
    with pytest.raises(BrokenContract) as broken:
        check_signal(Toy(change))
    assert complaint in str(broken.value)


def test_a_signal_that_reads_more_than_it_says_is_refused():
    with pytest.raises(BrokenContract, match=r"the access that it needs is enough\. Found: "):
        check_signal(Toy(needs=RANKS))


def test_a_signal_that_names_a_role_nobody_plays_is_refused():
    with pytest.raises(BrokenContract, match=r"models by their roles .* Found: 'oracle'"):
        check_signal(Toy(needs={**Loss.needs, "oracle": Access.LABEL}))


def test_a_signal_without_a_source_is_refused():
    with pytest.raises(BrokenContract, match="a name, a paper and kinds"):
        check_signal(Toy(paper=""))


def test_a_signal_or_an_audit_that_lacks_something_is_told_all_that_is_missing():
    class Incomplete:
        name = "incomplete"
        kinds = ("causal",)

    with pytest.raises(BrokenContract, match="Found: Incomplete without paper, needs, score"):
        check_signal(Incomplete())
    with pytest.raises(BrokenContract, match="Found: Incomplete without question, paper, needs, run"):
        check_audit(Incomplete())
    with pytest.raises(BrokenContract, match=r"an instance of the signal. Found: the class Toy, not Toy\(\)"):
        check_signal(Toy)


def test_a_broken_promise_is_not_reported_as_if_it_had_been_kept():
    with pytest.raises(BrokenContract) as broken:
        check_signal(Toy("reversed"))
    assert str(broken.value) == (
        "Not kept: toy: what was memorised scores higher (AUC of 0.9 or more). Found: AUC 0.00 with causal models."
    )


def test_a_signal_that_stumbles_over_silence_is_refused():
    class Stumbling(Toy):
        def score(self, evidence, corpus):
            scores = super().score(evidence, corpus)
            absent = [record for record in evidence.corpora[corpus] if record.id not in scores]
            return Scores.concatenate([scores, Scores.of(absent, lambda record: 0.0)])

    with pytest.raises(BrokenContract, match="a record without a prediction is left out"):
        check_signal(Stumbling())


@dataclass(frozen=True, kw_only=True)
class ToyAudit:
    """An audit that is right but for one change."""

    change: str = ""
    counter: list[int] = field(default_factory=lambda: [0])
    access: Mapping[str, Access] = field(default_factory=lambda: dict(Loss.needs))
    name: ClassVar[str] = "toy"
    question: ClassVar[str] = "Do members score higher?"
    paper: ClassVar[str] = "Toy et al."

    def needs(self, evidence: Evidence) -> Needs:
        self.counter[0] += 1
        if self.change == "moody":
            return Needs(access=self.access, later=str(self.counter[0]))
        if self.change == "silent":
            return Needs()
        asked = {(TARGET, AUDITED)} if evidence.corpora else set()
        return Needs(access=self.access, given=frozenset({TARGET, AUDITED}), score=frozenset(asked))

    def run(self, evidence: Evidence, rng: np.random.Generator, workspace: Workspace = NO_WORKSPACE) -> Result:
        workspace.progress("scoring", 2 if self.change == "boasts" else 1, 1)
        members = set(evidence.cohorts[AUDITED].members(TARGET))
        scores = Loss().score(evidence, AUDITED)
        if self.change == "reversed":
            scores = scores.with_values(-scores.values)
        inside, outside = scores.select_users(members), scores.select_users(set(scores.users) - members)
        try:
            estimate = auc(inside, outside)
        except NotEnoughData as error:
            if self.change == "raises":
                raise
            reason = error.found if self.change != "quiet" else None
            skipped = (Skipped(audit=self.name, code="too_few", reason=reason),) if reason else ()
            return self._result("inconclusive", (), skipped)
        estimate = self._moved(estimate, scores, rng, workspace)
        findings = (Finding.of(estimate, name="auc", unit="AUC", reading="0.5 is chance."),)
        found = self.change == "accuses" or estimate.interval.low > 0.55
        return self._result("found" if found else "not_found", findings, ())

    def _moved(self, estimate, scores, rng, workspace):
        been_here = workspace.folder is not None and (workspace.folder / "been here").exists()
        if workspace.folder is not None:
            (workspace.folder / "been here").touch()
        by = {
            "by workspace": 1e-3 * (workspace.folder is not None),
            "by what it left": 1e-3 * been_here,
            "by place": 1e-3 * scores.values[0],
            "by chance": 1e-3 * np.random.default_rng().random(),
            "by stream": 1e-3 * rng.random(),
        }
        return replace(estimate, value=estimate.value + float(by.get(self.change, 0)))

    def _result(self, outcome, findings, skipped):
        name = "another" if self.change == "renamed" else self.name
        return Result(
            audit=name,
            question=self.question,
            verdict=f"{outcome}.",
            outcome=outcome,
            outcome_code="too_few" if outcome == "inconclusive" else None,
            findings=findings,
            skipped=skipped,
        )


@pytest.mark.parametrize("change", ["", "by stream"])
def test_an_audit_that_keeps_the_contract_passes(change):
    check_audit(ToyAudit(change=change))


@pytest.mark.parametrize("kind", ["masked", "seq2seq", "classifier"])
def test_an_audit_is_checked_in_the_world_that_fits_it(kind):
    check_audit(ToyAudit(), World(kind=kind))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("reversed", "a target that has memorised is found out"),
        ("accuses", "a null target is not accused"),
        ("by place", "the order of records does not move a finding"),
        ("by chance", "the same seed gives the same JSON"),
        ("by workspace", "with a workspace it finds the same"),
        ("by what it left", "resuming from its workspace it finds the same"),
        ("boasts", "no more is done than there is to do"),
        ("renamed", "the result carries the audit's name and question"),
        ("moody", "`needs` depends on the settings and the evidence alone"),
        ("silent", "what the target must show is said before anything costs anything"),
        ("quiet", "is skipped, with a reason"),
    ],
)
def test_an_audit_that_breaks_the_contract_is_refused_by_what_it_broke(change, complaint):
    with pytest.raises(BrokenContract) as broken:
        check_audit(ToyAudit(change=change))
    assert complaint in str(broken.value)


def test_an_audit_that_reads_more_than_it_says_is_refused():
    with pytest.raises(BrokenContract, match=r"the access that it needs is enough\. Found: "):
        check_audit(ToyAudit(access=RANKS))


def test_an_audit_that_raises_on_too_little_data_is_refused():
    with pytest.raises(BrokenContract, match=r"is skipped, not raised\. Found: NotEnoughData"):
        check_audit(ToyAudit(change="raises"))


def toy_verb(**roles: Role) -> Verb:
    """A verb of the toy audit."""
    return Verb(name="toy", summary="Toy.", roles={TARGET: TARGET_MODEL, **roles})


@pytest.mark.parametrize(
    ("verb", "complaint"),
    [
        (toy_verb(), "its verb has a role for all that has to be given"),
        (toy_verb(audited=CANDIDATES, change=Role(kind="file", help="Also a setting.")), "of their own. Found: change"),
        (toy_verb(audited=CANDIDATES, seed=Role(kind="file", help="Also of every run.")), "of their own. Found: seed"),
    ],
)
def test_an_audit_whose_verb_cannot_be_called_is_refused(monkeypatch, verb, complaint):
    monkeypatch.setattr(ToyAudit, "verb", verb, raising=False)
    with pytest.raises(BrokenContract, match=complaint):
        check_audit(ToyAudit())


@pytest.mark.parametrize(
    ("shown", "complaint"),
    [
        (Presentation(annex=("palmistry",)), "Found: palmistry"),
        (Presentation(figures="recollect.no_such_module:draw"), "its figures can be drawn. Found: "),
        (Presentation(figures="recollect.testing.promises:iter_weaker"), "its figures can be drawn. Found: "),
    ],
)
def test_an_audit_that_cannot_be_shown_as_it_says_is_refused(monkeypatch, shown, complaint):
    monkeypatch.setattr(ToyAudit, "presentation", shown, raising=False)
    with pytest.raises(BrokenContract, match=complaint):
        check_audit(ToyAudit())


def test_the_world_hides_its_truth_from_everything_but_a_models_memory():
    world = World()
    evidence = world.build_evidence(world.build_null())
    scores = compute_scores(Loss(), evidence)
    members = {record.owner for record in world.member_records}
    inside, outside = scores.select_users(members), scores.select_users(set(scores.users) - members)
    interval = auc(inside, outside).interval
    assert interval.low < 0.5 < interval.high
    assert evidence.models_of_role("shadow") == tuple(f"shadow-{i}" for i in range(8))
    assert len(evidence.cohorts[AUDITED].members("shadow-3")) == 24
