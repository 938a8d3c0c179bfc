from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora import (
    Cohorts,
    Corpus,
    Record,
    assign_artificial_users,
    build_cohorts,
    draw_balanced_groups,
    draw_folds,
    draw_groups,
    draw_halves,
    list_units,
)
from recollect.errors import CorpusError, NotEnoughData, PlanError
from recollect.testing.refusals import refused

UNITS = [f"user{i}" for i in range(20)]


def corpus(order: list[int] | None = None) -> Corpus:
    records = [Record(id=str(i), user=f"user{i % 20}", text=f"text {i}") for i in range(60)]
    return Corpus.of([records[i] for i in order] if order else records)


def test_units_are_users_or_records():
    assert list_units(corpus(), "user") == tuple(sorted(UNITS))
    assert list_units(corpus(), "record") == tuple(sorted(str(i) for i in range(60)))
    with refused("no_users", CorpusError):
        list_units(Corpus.of([Record(id="1", text="x")]), "user")
    with refused("unknown_choice", PlanError):
        list_units(corpus(), "users")


@settings(deadline=None)
@given(seed=st.integers(0, 1000), shares=st.lists(st.floats(0.05, 1), min_size=1, max_size=5))
def test_shares_that_make_up_one_leave_nobody_out_and_overlap_nowhere(seed, shares):
    scaled = {f"g{i}": share / sum(shares) for i, share in enumerate(shares)}
    units = [str(i) for i in range(200)]
    drawn = draw_groups(units, scaled, seed=seed)
    together = [unit for chosen in drawn.values() for unit in chosen]
    assert sorted(together) == sorted(units)
    for group, share in scaled.items():
        assert abs(len(drawn[group]) - share * 200) <= 1


def test_groups_may_be_counts_and_what_does_not_fit_is_refused():
    drawn = draw_groups(UNITS, {"target": 5, "reference": 0.5}, seed=1)
    assert (len(drawn["target"]), len(drawn["reference"])) == (5, 10)
    assert not set(drawn["target"]) & set(drawn["reference"])
    with refused("too_few_units", NotEnoughData):
        draw_groups(UNITS, {"a": 11, "b": 0.5}, seed=0)
    with refused("empty_group", NotEnoughData):
        draw_groups(UNITS, {"a": 0.5, "b": 0.001}, seed=0)
    with refused("out_of_range", PlanError):
        draw_groups(UNITS, {"a": 1.5}, seed=0)


def test_a_group_is_a_random_choice_that_another_seed_or_name_changes():
    first = draw_groups(UNITS, {"a": 10}, seed=0)
    assert first == draw_groups(random.Random(0).sample(UNITS, 20), {"a": 10}, seed=0)
    assert first != draw_groups(UNITS, {"a": 10}, seed=1)
    assert first != draw_groups(UNITS, {"a": 10}, seed=0, name="other")


def test_every_unit_is_chosen_equally_often():
    counts = dict.fromkeys(UNITS, 0)
    for seed in range(400):
        for unit in draw_groups(UNITS, {"a": 0.25}, seed=seed)["a"]:
            counts[unit] += 1
    # Binomial(400, 1/4): five standard deviations on either side
    assert all(abs(count - 100) < 5 * np.sqrt(75) for count in counts.values())


def test_balanced_groups_are_more_alike_than_random_ones_and_still_random():
    rng, sizes = np.random.default_rng(0), {"members": 6, "controls": 10}
    traits = {unit: rng.normal(size=3).tolist() for unit in UNITS}
    values = np.array([traits[unit] for unit in UNITS])

    def differ(drawn):
        means = [np.mean([traits[unit] for unit in chosen], axis=0) for chosen in drawn.values()]
        return float(np.abs((means[0] - means[1]) / values.std(axis=0)).max())

    balanced = [draw_balanced_groups(traits, sizes, seed=seed, draws=200) for seed in range(60)]
    assert all([*map(len, drawn.values())] == [6, 10] for drawn in balanced)
    assert not any(set(drawn["members"]) & set(drawn["controls"]) for drawn in balanced)
    random_ones = [differ(draw_groups(UNITS, sizes, seed=seed)) for seed in range(60)]
    assert max(map(differ, balanced)) < np.median(random_ones)
    counts = {unit: sum(unit in drawn["members"] for drawn in balanced) for unit in UNITS}
    assert min(counts.values()) > 0  # who is unusual has to be drawn with somebody who makes up for it, but is drawn
    assert len({drawn["members"] for drawn in balanced}) > 50


def test_balanced_groups_follow_from_names_traits_and_seed_alone():
    traits = {unit: [float(i), 1.0] for i, unit in enumerate(UNITS)}  # the second says nothing
    turned = dict(reversed(traits.items()))
    drawn = [draw_balanced_groups(each, {"a": 5, "b": 5}, seed=3, draws=20) for each in (traits, turned)]
    assert drawn[0] == drawn[1] != draw_balanced_groups(traits, {"a": 5, "b": 5}, seed=4, draws=20)
    with refused("too_few_units", NotEnoughData):
        draw_balanced_groups(traits, {"a": 15, "b": 6}, seed=0)


@pytest.mark.parametrize(("units", "models"), [(20, 10), (21, 4), (20, 3), (2, 2)])
def test_halves_come_in_pairs_that_share_nobody(units, models):
    names = [str(i) for i in range(units)]
    drawn = draw_halves(names, models, seed=0)
    assert list(drawn) == [f"shadow-{i}" for i in range(models)]
    assert all(abs(len(chosen) - units / 2) <= 0.5 for chosen in drawn.values())
    for i in range(0, models - 1, 2):
        assert sorted(drawn[f"shadow-{i}"] + drawn[f"shadow-{i + 1}"]) == sorted(names)
    if models > 3:
        assert drawn["shadow-0"] not in (drawn["shadow-2"], drawn["shadow-3"])
    assert draw_halves(names, models + 2, seed=0)["shadow-0"] == drawn["shadow-0"]


def test_every_unit_is_unseen_by_exactly_one_fold():
    drawn = draw_folds(UNITS, 3, seed=0)
    unseen = [unit for chosen in drawn.values() for unit in set(UNITS) - set(chosen)]
    assert sorted(unseen) == sorted(UNITS)
    assert sorted(len(UNITS) - len(chosen) for chosen in drawn.values()) == [6, 7, 7]
    with refused("too_few_units", NotEnoughData):
        draw_folds(UNITS, 30, seed=0)


def test_the_order_of_records_has_no_influence():
    shuffled = corpus(random.Random(1).sample(range(60), 60))
    for unit in ("user", "record"):
        one, other = (draw_halves(list_units(whole, unit), 4, seed=3) for whole in (corpus(), shuffled))
        assert one == other


def test_the_matrix_members_and_corpora_agree():
    whole = corpus()
    cohorts = build_cohorts(whole, draw_halves(list_units(whole, "user"), 4, seed=0), unit="user", seed=0)
    assert cohorts.matrix.shape == (4, 20)
    assert cohorts.matrix.dtype == np.bool_
    for model in cohorts.models:
        members = set(cohorts.members(model))
        assert members | set(cohorts.non_members(model)) == set(UNITS)
        assert not members & set(cohorts.non_members(model))
        assert [unit in members for unit in cohorts.units] == cohorts.member_mask(model).tolist()
        assert [r.id for r in cohorts.select_corpus(whole, model)] == [r.id for r in whole if r.user in members]


def test_cohorts_of_records_pick_records_even_where_there_are_users():
    whole = corpus()
    cohorts = build_cohorts(whole, {"target": ["3", "41"]}, unit="record", seed=0)
    assert [r.id for r in cohorts.select_corpus(whole, "target")] == ["3", "41"]


def test_another_corpus_is_refused():
    cohorts = build_cohorts(corpus(), {"target": ["user1"]}, unit="user", seed=0)
    with refused("different_corpora", CorpusError):
        cohorts.select_corpus(corpus(list(range(59))), "target")
    with refused("unknown_model", CorpusError):
        cohorts.members("targets")
    with refused("unknown_member", CorpusError):
        build_cohorts(corpus(), {"target": ["user99"]}, unit="user", seed=0)


def test_cohorts_are_joined_model_by_model():
    whole = corpus()
    one = build_cohorts(whole, {"target": ["user1"]}, unit="user", seed=0)
    both = one.join(build_cohorts(whole, {"shadow": ["user2"]}, unit="user", seed=0))
    assert (both.members("target"), both.members("shadow")) == (("user1",), ("user2",))
    with refused("duplicate_model", CorpusError):
        one.join(one)
    with refused("different_corpora", CorpusError):
        one.join(build_cohorts(whole, {"shadow": ["1"]}, unit="record", seed=0))


@settings(deadline=None, max_examples=30)
@given(members=st.dictionaries(st.text(min_size=1, max_size=5), st.sets(st.sampled_from(UNITS)), max_size=4))
def test_saved_cohorts_are_loaded_unchanged(tmp_path_factory, members):
    path = tmp_path_factory.mktemp("cohorts") / "cohorts.json"
    cohorts = Cohorts.of(members, units=UNITS, unit="user", corpus="some digest", seed=7)
    cohorts.save(path)
    again = Cohorts.load(path)
    assert (again.unit, again.corpus, again.seed, again.units, again.models) == (
        "user", "some digest", 7, cohorts.units, cohorts.models,
    )  # fmt: skip
    assert np.array_equal(again.matrix, cohorts.matrix)
    assert path.stat().st_mode & 0o077 == 0, "names of users are for the owner alone"


SAVED = {"version": 1, "unit": "user", "corpus": "d", "seed": 0, "units": ["a", "b"], "models": {"m": [0]}}
DAMAGES = [
    ({"version": 2}, "version"),
    ({"unit": "group"}, "unit"),
    ({"units": ["b", "a"]}, "units"),
    ({"units": ["a", "a"]}, "units"),
    ({"models": {"m": [2]}}, "'m'"),
    ({"models": {"m": [-1]}}, "'m'"),
    ({"models": {"m": [0, 0]}}, "'m'"),
    ({"models": {"m": ["a"]}}, "models.m.0"),
    ({"seed": "0"}, "seed"),
    ({"extra": 1}, "extra"),
]


@pytest.mark.parametrize(("change", "where"), DAMAGES)
def test_damaged_cohorts_are_refused_by_the_name_of_the_damage(tmp_path, change, where):
    path = tmp_path / "cohorts.json"
    path.write_text(json.dumps(SAVED))
    Cohorts.load(path)
    path.write_text(json.dumps(SAVED | change))
    with refused("bad_cohorts", CorpusError) as refusal:
        Cohorts.load(path)
    assert where in refusal.error.found


def test_missing_and_half_written_cohorts_are_refused(tmp_path):
    with refused("unreadable_file", CorpusError):
        Cohorts.load(tmp_path / "cohorts.json")
    (tmp_path / "cohorts.json").write_text(json.dumps(SAVED)[:40])
    with refused("bad_cohorts", CorpusError):
        Cohorts.load(tmp_path / "cohorts.json")


def test_artificial_users_divide_a_corpus_at_random_and_by_id_alone():
    records = [Record(id=str(i), text=f"text {i}") for i in range(2000)]
    one = assign_artificial_users(Corpus.of(records), users=20, seed=0)
    other = assign_artificial_users(Corpus.of(reversed(records)), users=20, seed=0)
    assert {r.id: r.user for r in one} == {r.id: r.user for r in other}
    assert [(r.id, r.text) for r in one] == [(r.id, r.text) for r in records]
    sizes = np.unique([r.user for r in one], return_counts=True)[1]
    assert (len(sizes), one.summary.users) == (20, 20)
    # Binomial(2000, 1/20): five standard deviations on either side
    assert np.abs(sizes - 100).max() < 5 * np.sqrt(95)
    assert {r.id: r.user for r in assign_artificial_users(Corpus.of(records), users=20, seed=1)} != {
        r.id: r.user for r in one
    }


def test_artificial_users_are_refused_where_there_are_real_or_too_few():
    with refused("has_users", CorpusError):
        assign_artificial_users(corpus(), users=2, seed=0)
    with refused("too_few_records", NotEnoughData):
        assign_artificial_users(Corpus.of(Record(id=str(i), text="x") for i in range(19)), users=2, seed=0)
