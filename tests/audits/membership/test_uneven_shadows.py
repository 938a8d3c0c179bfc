"""Shadows that were trained on candidates and not on controls, or the other way round, accuse nobody for that."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.audits.membership.audit import MembershipAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.signals.shadow_scores import are_shadows_uneven, score_with_shadows
from recollect.stats.significance import binomial_p
from recollect.streams import stream
from recollect.testing.fakes import Scripted
from recollect.testing.world import WorldAnswers

SHADOWS, WORLDS = 8, 30


def write(side, people):
    rng = stream(0, side)
    return [
        Record(id=f"{side}-{i}-{j}", user=f"{side}-{i}", text=" ".join(f"word{n}" for n in rng.integers(0, 99, 5)))
        for i in range(people)
        for j in range(3)
    ]


SIDES = {AUDITED: write("a", 16), CONTROLS: write("c", 40)}
RECORDS = [record for side in SIDES.values() for record in side]


def build_evidence(seed, *, trained):
    """A target that saw nobody, and shadows each trained on half of the users of some sides."""
    rng = np.random.default_rng(seed)
    users = sorted({record.owner for side in trained for record in SIDES[side]})
    halves = [rng.permutation(users)[: len(users) // 2].tolist() for _ in range(SHADOWS // 2)]
    members = {f"shadow-{2 * i}": sorted(half) for i, half in enumerate(halves)}
    members |= {f"shadow-{2 * i + 1}": sorted(set(users) - set(half)) for i, half in enumerate(halves)}
    difficulty = dict(zip([r.id for r in RECORDS], rng.normal(-3, 0.5, len(RECORDS)), strict=True))
    owners = sorted({record.owner for record in RECORDS})

    def build(name, saw):
        mood = dict(zip(owners, rng.normal(0, 0.15, len(owners)), strict=True))
        return Scripted(
            {
                r.id: np.full(5, np.exp(difficulty[r.id] + mood[r.owner] + rng.normal(0, 0.15) + (r.owner in saw) / 2))
                for r in RECORDS
            },
            name=name,
        )

    corpora = {role: Corpus.of(records) for role, records in SIDES.items()}
    cohorts = {
        role: Cohorts.of(
            {name: sorted(set(chosen) & {r.owner for r in SIDES[role]}) for name, chosen in members.items()},
            units=sorted({r.owner for r in SIDES[role]}),
            unit="user",
            corpus=corpora[role].digest,
            seed=0,
        )
        for role in trained
    }
    models = {TARGET: build("target", ()), **{name: build(name, saw) for name, saw in members.items()}}
    return Evidence(models=models, corpora=corpora, cohorts=cohorts, seed=seed)


def complete(evidence, audit):
    return collect_evidence(audit, evidence, score=lambda model, corpus: WorldAnswers(model), train=None)


def test_candidates_are_found_no_more_often_than_stated_where_shadows_saw_halves_of_them_alone():
    audit, low = MembershipAudit(signal="rmia", by="user", fpr=(0.1,)), 0
    for seed in range(WORLDS):
        result = audit.run(complete(build_evidence(seed, trained=(AUDITED,)), audit), stream(seed, audit.name))
        findings = {finding.name: finding.value for finding in result.findings}
        low += findings.get("training_p", 1.0) <= 0.05
        assert "shadows_trained_on_candidates_only" in result.note_codes
    assert binomial_p(low, WORLDS, 0.05) > 0.001


@pytest.mark.parametrize(("trained", "uneven"), [((AUDITED,), True), ((CONTROLS,), True), ((AUDITED, CONTROLS), False)])
def test_shadows_are_uneven_where_one_side_alone_trained_them(trained, uneven):
    assert are_shadows_uneven(build_evidence(1, trained=trained)) is uneven


def test_every_record_is_compared_with_as_many_shadows_that_were_not_trained_on_it():
    audit = MembershipAudit(signal="rmia", by="user", fpr=(0.1,))
    found = score_with_shadows(complete(build_evidence(1, trained=(AUDITED,)), audit), AUDITED, even=True)
    assert set(found.even.sum(axis=1).tolist()) == {SHADOWS // 2}
    assert not (found.even & found.trained_on).any()
