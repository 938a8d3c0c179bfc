"""Figures of the membership audit, from its own tables."""

import numpy as np
import pyarrow as pa
import pytest

from recollect.audits.membership.audit import MembershipAudit
from recollect.corpora.cohorts import Cohorts
from recollect.pipeline.plan import Plan
from recollect.pipeline.run import run
from recollect.report.figures.membership import membership_figures
from recollect.testing.fakes import Null
from recollect.testing.world import World


def audited(tmp_path, *, truth):
    """The result of a small audit, with or without the truth."""
    world = World(kind="causal", controls=40)
    corpus = world.corpora["audited"]
    members = {record.owner for record in world.learnt}
    cohorts = Cohorts.of(
        {"target": members}, units={r.owner for r in corpus}, unit="user", corpus=corpus.digest, seed=0
    )
    plan = Plan(
        audit=MembershipAudit(by="user", fpr=(0.1,)),
        models={"target": world.memoriser(), "reference": Null(seed=1)},
        corpora=world.corpora,
        cohorts={"audited": cohorts} if truth else {},
        work=tmp_path,
    )
    return run(plan)


def test_where_the_truth_is_known_members_and_others_are_drawn_apart(tmp_path):
    result = audited(tmp_path, truth=True)
    hills, curve = membership_figures(result, result.held)
    trained = np.array(result.held["candidates"]["trained"].to_pylist())
    assert hills.legend == (("found", f"{trained.sum()} members"), ("chance", f"{(~trained).sum()} non-members"))
    assert "100.0% of members at or beyond the threshold" in hills.description
    assert "100 % of members are found where 10 % of non-members are flagged" in curve.description


def test_where_it_is_not_candidates_are_drawn_against_controls(tmp_path):
    result = audited(tmp_path, truth=False)
    hills, p = membership_figures(result, result.held)
    assert hills.title == "Candidates and controls"
    share = np.mean(np.array(result.held["candidates"]["p_value"]) <= 0.1)
    assert f"{share:.1%} are at most 0.1" in p.description
    assert all("<svg" in svg for svg in (*hills.svgs, *p.svgs))


@pytest.mark.parametrize("gone", ["score", "p_value", "user"])
def test_damaged_tables_draw_nothing(tmp_path, gone):
    result = audited(tmp_path, truth=True)
    tables = {**result.held, "candidates": result.held["candidates"].drop_columns([gone])}
    assert membership_figures(result, tables) == []
    assert membership_figures(result, {"candidates": pa.table({})}) == []
