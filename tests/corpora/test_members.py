"""Members: every way of giving them says the same, and what cannot be true is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora import Cohorts, Columns, Corpus, Members, Record, Split, build_cohorts, read_corpus, read_members
from recollect.errors import CorpusError, PlanError
from recollect.testing.refusals import refused

USERS = ["ann", "bob", "ann", "cid", "dee"]
TRAINED = [True, False, True, None, False]
ROWS = [
    {"id": f"r{i}", "user": user, "text": f"text {i}. And more.", "trained": trained}
    for i, (user, trained) in enumerate(zip(USERS, TRAINED, strict=True))
]
EXPECTED = Members(unit="user", members=frozenset(["ann"]), non_members=frozenset(["bob", "dee"]))


@pytest.fixture
def corpus() -> Corpus:
    return read_corpus(ROWS)


@pytest.fixture
def nameless() -> Corpus:
    return read_corpus(ROWS, columns=Columns(user=""))


def saved(path: Path, corpus: Corpus) -> Path:
    cohorts = build_cohorts(corpus, {"target": ["ann", "cid"], "shadow": ["bob"]}, unit="user", seed=0)
    cohorts.save(path)
    return path


COLLECTIONS = [
    ["ann"], ("ann", "ann"), {"ann"}, frozenset(["ann"]), iter(["ann"]), {"ann": 1}.keys(), np.array(["ann"]),
    pd.Series(["ann"]), pl.Series(["ann"]),
]  # fmt: skip


@pytest.mark.parametrize("ids", COLLECTIONS, ids=lambda ids: type(ids).__name__)
def test_members_are_a_collection_of_ids(corpus, ids):
    assert read_members(ids, corpus, non_members=["dee", "bob"]) == EXPECTED


def test_members_are_a_file_with_one_id_per_line(corpus, tmp_path):
    (tmp_path / "in.txt").write_bytes("\ufeffann\r\n\r\n".encode())
    (tmp_path / "out.txt").write_text("\n  bob \ndee")
    for members, others in ((tmp_path / "in.txt", tmp_path / "out.txt"), (str(tmp_path / "in.txt"), ["bob", "dee"])):
        assert read_members(members, corpus, non_members=others) == EXPECTED


def test_whoever_is_not_listed_is_unknown_unless_others_are_non_members(corpus):
    assert read_members(["ann"], corpus) == Members(unit="user", members=frozenset(["ann"]))
    everybody = read_members(["ann"], corpus, others="non-members")
    assert everybody.non_members == {"bob", "cid", "dee"}
    assert read_members(None, corpus, non_members=["bob"]).truth_by_user(corpus) == {"bob": False}
    assert read_members("column:trained", corpus, others="non-members").non_members == {"bob", "cid", "dee"}


def test_ids_are_users_where_there_are_users_and_records_where_there_are_none(corpus, nameless):
    assert read_members(["ann"], corpus).unit == "user"
    assert read_members(["r0"], nameless) == Members(unit="record", members=frozenset(["r0"]))
    numbered = read_corpus([{"text": "x", "user": 7}, {"text": "y", "user": 8.5}])
    assert read_members([7, np.float64(8.5)], numbered).members == {"7", "8.5"}


FORMS = {
    "jsonl": [True, False, None],
    "parquet": [True, False, None],
    "csv": ["true", "FALSE", ""],
    "tsv": ["1", "0", " "],
}
VALUES: list[list[Any]] = [
    [True, False, None], [1, 0, None], [1.0, 0.0, float("nan")], ["yes", "No", ""], [" True", "false ", None],
    ["1", "0", ""], [np.True_, np.False_, pd.NA], [np.int8(1), np.int8(0), np.nan],
]  # fmt: skip


@pytest.mark.parametrize("format", FORMS)
def test_a_column_of_a_file_says_who_is_a_member(write, format):
    values = dict(zip([True, False, None], FORMS[format], strict=True))
    path = write(f"a.{format}", [{**row, "trained": values[row["trained"]]} for row in ROWS])
    assert read_members("column:trained", read_corpus(path)) == EXPECTED


@pytest.mark.parametrize("values", VALUES, ids=str)
def test_truth_is_written_in_many_ways(values):
    said = dict(zip([True, False, None], values, strict=True))
    rows = [{**row, "trained": said[row["trained"]]} for row in ROWS]
    for source in (rows, pd.DataFrame(rows), pd.DataFrame(rows, dtype=object)):
        assert read_members("column:trained", read_corpus(source)) == EXPECTED


def test_an_array_may_say_who_is_a_member(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((3, 2)), y=np.zeros(3, int), user=[1, 1, 2], seen=[True, True, False])
    known = read_members("column:seen", read_corpus(tmp_path / "a.npz"))
    assert known == Members(unit="user", members=frozenset("1"), non_members=frozenset("2"))


def test_a_column_that_splits_a_user_is_kept_by_record(nameless):
    rows = [dict(row) for row in ROWS]
    for value in (False, None):
        rows[2]["trained"] = value
        corpus = read_corpus(rows)
        known, dropped = read_members("column:trained", corpus), Counter()
        assert (known.unit, known.members) == ("record", {"r0"})
        assert known.truth_by_record(corpus) == {"r0": True, "r1": False, "r4": False} | (
            {} if value is None else {"r2": False}
        )
        assert known.truth_by_user(corpus, dropped) == {"bob": False, "dee": False}
        assert dropped == {"partial_users": 1}
    assert read_members("column:trained", nameless).truth_by_user(nameless) == {
        "r0": True, "r1": False, "r2": True, "r4": False,
    }  # fmt: skip


def test_a_column_of_non_members_says_nothing_of_members(corpus):
    rows = [{**row, "held_out": row["user"] in ("bob", "dee")} for row in ROWS]
    whole = read_corpus(rows)
    assert read_members(["ann"], whole, non_members="column:held_out") == EXPECTED
    assert read_members(None, whole, non_members="column:held_out") == Members(
        unit="user", members=frozenset(), non_members=frozenset(["bob", "dee"])
    )


def test_users_and_records_are_joined_by_record():
    rows = [dict(row) for row in ROWS]
    rows[2]["trained"] = None
    corpus = read_corpus(rows)
    known = read_members("column:trained", corpus, non_members=["cid"])
    assert known == Members(unit="record", members=frozenset(["r0"]), non_members=frozenset(["r1", "r3", "r4"]))


def test_a_column_changes_neither_records_nor_digests_and_travels_with_pieces(corpus, write):
    carried = corpus.with_column("trained")
    assert (list(carried), carried.digest, carried.skipped) == (list(corpus), corpus.digest, corpus.skipped)
    assert [record.digest for record in carried] == [record.digest for record in corpus]
    assert [record.extra for record in carried] == TRAINED
    assert [record.extra for record in corpus] == [None] * 5
    assert [r.extra for r in corpus.select_users(["ann", "dee"]).with_column("trained")] == [True, True, False]
    pieces = read_corpus(write("a.jsonl", ROWS), split=Split())
    assert read_members("column:trained", pieces) == EXPECTED
    assert sum(read_members("column:trained", pieces).truth_by_record(pieces).values()) == 4


def test_a_column_that_turns_up_late_is_found(write):
    rows = [{"text": "x"}] * 1500 + [{"text": "x", "trained": 1}]
    assert read_members("column:trained", read_corpus(write("a.jsonl", rows))).members == {"1501"}
    assert read_members("column:trained", read_corpus(rows)).members == {"1501"}


def test_cohorts_tell_of_everybody(corpus, tmp_path):
    path = saved(tmp_path / "cohorts.json", corpus)
    for given_as in (path, str(path), Cohorts.load(path)):
        known = read_members(given_as, corpus)
        assert known == Members(unit="user", members=frozenset(["ann", "cid"]), non_members=frozenset(["bob", "dee"]))
    assert read_members(path, corpus, model="shadow").members == {"bob"}
    records = build_cohorts(corpus, {"target": ["r0", "r4"]}, unit="record", seed=0)
    dropped = Counter()
    assert read_members(records, corpus).truth_by_user(corpus, dropped) == {"bob": False, "cid": False, "dee": True}
    assert dropped == {"partial_users": 1}


def test_the_digest_is_that_of_who_is_known_however_it_was_said(corpus, tmp_path):
    (tmp_path / "users.txt").write_text("ann\n")
    said = [
        read_members(["ann"], corpus, non_members=["dee", "bob"]),
        read_members("column:trained", corpus),
        read_members(tmp_path / "users.txt", corpus, non_members={"bob", "dee"}),
        read_members(EXPECTED, corpus),
    ]
    assert {known.digest for known in said} == {EXPECTED.digest}
    others = [replace(EXPECTED, **change) for change in (
        {"unit": "record"}, {"non_members": frozenset()}, {"members": frozenset(["ann", "cid"])},
    )]  # fmt: skip
    assert len({EXPECTED.digest, *(known.digest for known in others)}) == 4


@settings(deadline=None, max_examples=80)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([True, False, None])), min_size=1, max_size=12))
def test_truth_by_user_equals_a_slow_count(told):
    rows = [{"text": "x", "user": user, "trained": value} for user, value in told]
    corpus, dropped = read_corpus(rows), Counter()
    if not any(value for _, value in told):
        with refused("empty_members", CorpusError):
            read_members("column:trained", corpus)
        return
    known = read_members("column:trained", corpus)
    by_user = {user: {value for other, value in told if other == user} for user, _ in told}
    assert known.truth_by_user(corpus, dropped) == {
        user: values == {True} for user, values in by_user.items() if values in ({True}, {False})
    }
    assert dropped["partial_users"] == sum(len(values) > 1 for values in by_user.values())
    assert known.truth_by_record(corpus) == {str(i): v for i, (_, v) in enumerate(told, 1) if v is not None}
    assert known.unit == ("record" if dropped else "user")


REFUSALS: list[tuple[Any, dict[str, Any], str]] = [
    (["ann", "bo"], {}, "unknown_member"),
    (["r0"], {}, "unknown_member"),
    (["ann"], {"non_members": ["nobody"]}, "unknown_member"),
    (Members(unit="record", members=frozenset(["ann"])), {}, "unknown_member"),
    (["ann", "bob"], {"non_members": ["bob"]}, "member_and_non_member"),
    ("column:trained", {"non_members": ["ann"]}, "member_and_non_member"),
    ([], {}, "empty_members"),
    (None, {}, "empty_members"),
    (["ann"], {"non_members": []}, "empty_non_members"),
    ("column:never", {}, "empty_members"),
    (["ann"], {"non_members": "column:never"}, "empty_non_members"),
    ("column:trainde", {}, "missing_column"),
    ("column:text", {}, "not_a_boolean"),
    ("column:count", {}, "not_a_boolean"),
    ("ann", {}, "missing_file"),
    ([None], {}, "no_id"),
    ([["ann"]], {}, "wrong_type"),
    ({"ann": True}, {}, "unsupported_source"),
    (3, {}, "unsupported_source"),
    (["ann"], {"non_members": EXPECTED}, "needless_non_members"),
    (["ann"], {"non_members": "cohorts.json"}, "needless_non_members"),
]


@pytest.mark.parametrize(
    ("members", "options", "code"), REFUSALS, ids=[f"{i}-{code}" for i, (*_, code) in enumerate(REFUSALS)]
)
def test_what_cannot_be_true_is_refused(members, options, code):
    corpus = read_corpus([{**row, "never": False, "count": 2} for row in ROWS])
    with refused(code, CorpusError) as refusal:
        read_members(members, corpus, **options)
    assert refusal.error.do


def test_an_unknown_member_is_named_with_the_nearest(corpus):
    with refused("unknown_member") as refusal:
        read_members(["ann", "bobb", "zoe"], corpus)
    assert "'bobb'" in refusal.error.found
    assert "'bob'" in refusal.error.do


def test_users_of_a_corpus_without_users_are_refused_with_the_column_to_name(nameless):
    with refused("unknown_member") as refusal:
        read_members(["ann"], nameless)
    assert "--user-column" in refusal.error.do


def test_unreadable_lists_other_cohorts_and_bare_records_are_refused(corpus, tmp_path):
    (tmp_path / "bytes.txt").write_bytes(b"ann\n\xff\n")
    (tmp_path / "empty.txt").write_text("\n")
    for members, code in (
        (tmp_path / "bytes.txt", "not_utf8"),
        (tmp_path / "empty.txt", "empty_members"),
        (tmp_path, "unreadable_file"),
        (tmp_path / "none.json", "unreadable_file"),
        (build_cohorts(corpus.select_users(["ann"]), {"target": ["ann"]}, unit="user", seed=0), "different_corpora"),
        (build_cohorts(corpus, {"model": ["ann"]}, unit="user", seed=0), "unknown_model"),
        (build_cohorts(corpus, {"target": []}, unit="user", seed=0), "empty_members"),
    ):
        with refused(code, CorpusError):
            read_members(members, corpus)
    with refused("no_columns", CorpusError):
        read_members("column:trained", Corpus.of([Record(id="1", text="x")]))
    with refused("unknown_choice", PlanError):
        read_members(["ann"], corpus, others="members")
    with refused("unknown_choice", PlanError):
        Members(unit="users", members=frozenset(["ann"]))
