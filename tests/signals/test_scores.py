"""Scores: joined by record and never by position."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora.record import Record
from recollect.signals.scores import Scores
from recollect.stats import auc, conformal_p
from recollect.testing.refusals import refused


def scores(n=6, seed=0):
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    return Scores(tuple(f"r{i}" for i in order), tuple(f"u{i % 3}" for i in order), order.astype(float) + 0.5)


@given(n=st.integers(1, 30), seed=st.integers(0, 50))
@settings(deadline=None, max_examples=40)
def test_combining_goes_by_record_whatever_the_order(n, seed):
    target, reference = scores(n, seed), scores(n, seed + 1)
    difference = target.combine(reference, np.subtract)
    assert difference.records == target.records
    assert difference.values.tolist() == [0.0] * n


@given(n=st.integers(1, 30), seed=st.integers(0, 50))
@settings(deadline=None, max_examples=40)
def test_mean_by_user_equals_collecting_each_users_records(n, seed):
    given_scores = scores(n, seed)
    by_hand: dict[str, list[float]] = {}
    for record, user in zip(given_scores.records, given_scores.users, strict=True):
        by_hand.setdefault(user, []).append(given_scores[record])
    users = given_scores.average_by_user()
    assert set(users.records) == set(by_hand)
    assert all(users[user] == pytest.approx(np.mean(values)) for user, values in by_hand.items())
    assert users.users == users.records


def test_combining_refuses_records_that_have_only_one_score():
    with refused("unpaired_scores") as refusal:
        scores(5).combine(scores(6), np.subtract)
    assert "'r5'" in refusal.error.found


def test_scores_of_records_keep_their_owner_and_leave_out_what_has_no_score():
    records = [Record(id="a", user="ann", text="x"), Record(id="b", text="y"), Record(id="c", user="cy", text="z")]
    made = Scores.of(records, {"b": 2.0, "a": 1.0})
    assert (made.records, made.users, made.values.tolist()) == (("a", "b"), ("ann", "b"), [1.0, 2.0])
    assert Scores.of(records, lambda record: float(len(record.id)))["c"] == 1


def test_scores_that_are_not_numbers_are_refused_with_their_number_their_records_and_what_to_do():
    with refused("missing_scores") as refusal:
        Scores(("a", "b"), ("a", "b"), np.array([1.0, np.nan]))
    assert "1 of 2 records are not numbers (NaN): 'b'." in refusal.error.found
    assert "Leave these records out" in refusal.error.do
    with refused("missing_scores") as refusal:
        Scores(tuple("abcdefg"), tuple("abcdefg"), np.full(7, np.nan))
    assert refusal.error.found.endswith("'d', 'e' and 2 more.")


@pytest.mark.parametrize(("records", "users"), [(("a", "a"), ("x", "y")), (("a", "b"), ("x",))])
def test_a_record_has_one_score_and_one_owner(records, users):
    with pytest.raises(ValueError, match=r"two scores|1 users"):
        Scores(records, users, np.array([1.0, 2.0]))


def test_selecting_keeps_numbers_with_their_owners():
    chosen = scores(6).select(["r4", "r1"])
    assert (chosen.users, chosen.values.tolist()) == (("u1", "u1"), [4.5, 1.5])
    assert set(scores(6).select_users({"u0"}).records) == {"r0", "r3"}
    assert "r9" not in chosen


def test_statistics_take_scores_as_they_are_and_count_their_users():
    members, others = scores(9).with_values(np.arange(9.0)), scores(9, seed=3)
    estimate = auc(members, others)
    assert estimate.n["member_users"] == 3
    assert members.with_values(conformal_p(members.values, others)).records == members.records


def test_a_table_holds_all_and_gives_it_back():
    given_scores = scores(5)
    table = given_scores.to_table(flagged=given_scores.values > 2)
    assert table.column_names == ["record", "user", "score", "flagged"]
    back = Scores.from_table(table)
    assert (back.records, back.users, back.values.tolist()) == (
        given_scores.records,
        given_scores.users,
        given_scores.values.tolist(),
    )
    with refused("missing_columns"):
        Scores.from_table(table.drop_columns(["user"]))


def test_parts_joined_are_the_whole_again():
    whole = scores(7)
    parts = [whole.select(whole.records[:3]), whole.select([]), whole.select(whole.records[3:])]
    joined = Scores.concatenate(parts)
    assert (joined.records, joined.users, joined.values.tolist()) == (whole.records, whole.users, whole.values.tolist())
    with pytest.raises(ValueError, match="two scores"):
        Scores.concatenate([whole, whole])
    assert len(Scores.concatenate([])) == 0
