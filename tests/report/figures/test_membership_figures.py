"""Figures of the membership audit, from its own tables."""

import numpy as np
import pyarrow as pa
import pytest

from recollect.audits.membership.audit import MembershipAudit
from recollect.corpora.cohorts import Cohorts
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.report.figures.membership import draw_membership_figures
from recollect.testing.fakes import Null
from recollect.testing.world import World


def audited(tmp_path, *, truth):
    """The result of a small audit, with or without the truth."""
    world = World(kind="causal", controls=40, seed=1)
    corpus = world.corpora["audited"]
    members = {record.owner for record in world.member_records}
    cohorts = Cohorts.of(
        {"target": members}, units={r.owner for r in corpus}, unit="user", corpus=corpus.digest, seed=0
    )
    plan = Plan(
        audit=MembershipAudit(by="user", fpr=(0.1,)),
        models={"target": world.build_memoriser(), "reference": Null(seed=1)},
        corpora=world.corpora,
        cohorts={"audited": cohorts} if truth else {},
        work=tmp_path,
    )
    return run(plan)


def test_where_the_truth_is_known_members_and_others_are_drawn_apart(tmp_path):
    result = audited(tmp_path, truth=True)
    hills, curve = draw_membership_figures(result, result.tables_in_memory)
    trained = np.array(result.tables_in_memory["candidates"]["trained"].to_pylist())
    assert hills.legend == (("found", f"members ({trained.sum()})"), ("null", f"non-members ({(~trained).sum()})"))
    assert "100.0% of members at or beyond the threshold" in hills.description
    assert "100 % of members are found where 10 % of non-members are flagged" in curve.description


def test_where_it_is_not_candidates_are_drawn_against_controls(tmp_path):
    result = audited(tmp_path, truth=False)
    hills, p = draw_membership_figures(result, result.tables_in_memory)
    assert hills.title == "Candidates and controls"
    share = np.mean(np.array(result.tables_in_memory["candidates"]["p_value"]) <= 0.1)
    assert f"{share:.1%} are at most 0.1" in p.description
    assert all("<svg" in svg for svg in (*hills.svgs, *p.svgs))


@pytest.mark.parametrize("truth", [True, False])
def test_candidates_without_scores_draw_nothing(tmp_path, truth):
    result = audited(tmp_path, truth=truth)
    tables = {**result.tables_in_memory, "candidates": result.tables_in_memory["candidates"].drop_columns(["score"])}
    assert draw_membership_figures(result, tables) == []
    assert draw_membership_figures(result, {"candidates": pa.table({})}) == []


def test_p_values_that_are_gone_are_not_drawn(tmp_path):
    result = audited(tmp_path, truth=False)
    tables = {**result.tables_in_memory, "candidates": result.tables_in_memory["candidates"].drop_columns(["p_value"])}
    assert draw_membership_figures(result, tables) == []


@pytest.mark.parametrize(
    "damage", [{"fpr": [0.0, 1.0]}, {"fpr": [0.0, 0.5], "tpr": [0.0, 1.0]}, {"fpr": ["a"], "tpr": ["b"]}]
)
def test_a_curve_that_is_none_is_not_drawn(tmp_path, damage):
    result = audited(tmp_path, truth=True)
    assert len(draw_membership_figures(result, {**result.tables_in_memory, "roc": pa.table(damage)})) == 1


def test_the_drawn_curve_is_the_saved_one(tmp_path):
    result = audited(tmp_path, truth=True)
    saved = pa.table({"fpr": [0.0, 0.1, 1.0], "tpr": [0.0, 0.25, 1.0]})
    _, curve = draw_membership_figures(result, {**result.tables_in_memory, "roc": saved})
    assert "25 % of members are found where 10 % of non-members are flagged" in curve.description


def test_unknown_candidates_are_on_neither_side(tmp_path):
    result = audited(tmp_path, truth=True)
    candidates = result.tables_in_memory["candidates"]
    known = candidates["trained"].to_pylist()
    unknown = [None if place % 3 == 0 else each for place, each in enumerate(known)]
    half = candidates.set_column(candidates.column_names.index("trained"), "trained", pa.array(unknown, pa.bool_()))
    hills, _ = draw_membership_figures(result, {**result.tables_in_memory, "candidates": half})
    assert hills.legend == (
        ("found", f"members ({unknown.count(True)})"),
        ("null", f"non-members ({unknown.count(False)})"),
    )
