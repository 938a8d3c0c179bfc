"""Planting: every secret as often as it says, at random places, and never a control."""

from __future__ import annotations

import json
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from recollect.corpora import Corpus, Record, read_corpus
from recollect.corpora.canaries.insertion import Canaries, CanarySettings, plant
from recollect.corpora.corpus_writer import write_corpus
from recollect.errors import CorpusError, NotEnoughData, PlanError
from recollect.testing.refusals import refused


def texts(count: int, users: int | None = 5) -> Corpus:
    return Corpus.of(
        Record(id=f"r{i}", user=None if users is None else f"u{i % users}", text=f"just some words {i}")
        for i in range(count)
    )


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("users", [None, 5])
def test_every_secret_stands_there_as_often_as_it_says_and_controls_never(inside, users):
    planting = CanarySettings(format="my pin is {digits:6}", secrets=3, repeat=(1, 4), controls=7, inside=inside)
    planted, manifest = plant(texts(50, users), planting)
    records = list(planted)
    assert len(records) == (50 if inside else 50 + 3 * 5)
    assert len({record.id for record in records}) == len(records)
    assert [canary.planted for canary in manifest.canaries] == [1] * 3 + [4] * 3 + [0] * 7
    for canary in manifest.canaries:
        holding = [record.id for record in records if canary.text in record.text.replace("  ", " ")]
        assert len(holding) == canary.planted
        assert tuple(holding) == canary.records
    assert len({canary.text for canary in manifest.canaries}) == 13


def test_planted_records_belong_to_new_users_or_to_existing_ones():
    corpus = texts(20)
    for users in ("new", "existing"):
        planted, manifest = plant(corpus, CanarySettings(format="{digits:6}", secrets=4, repeat=(2,), users=users))
        owners = [r.user for r in planted if not r.id.startswith("r")]
        assert len(owners) == 8
        assert all((owner in {f"u{i}" for i in range(5)}) == (users == "existing") for owner in owners)
        if users == "new":
            assert len(set(owners)) == 4  # each owns one secret, both times
        assert manifest.corpus == corpus.digest


def test_what_was_there_stays_as_it_was():
    corpus = texts(30)
    planted, _ = plant(corpus, CanarySettings(format="{digits:4}", secrets=5))
    assert [record for record in planted if record.id.startswith("r")] == list(corpus)


def test_the_same_seed_plants_the_same_and_another_seed_does_not():
    corpus = texts(30)
    one, other, third = (plant(corpus, CanarySettings(format="{digits:6}", seed=seed)) for seed in (1, 1, 2))
    assert one[1] == other[1] != third[1]
    assert one[0].digest == other[0].digest != third[0].digest
    assert list(one[0]) == list(one[0])


def test_places_are_uniform_over_the_corpus():
    planted, _ = plant(texts(400), CanarySettings(format="{digits:9}", secrets=2000, controls=0))
    places, seen = [], 0
    for record in planted:
        if record.id.startswith("canary"):
            places.append(seen)
        else:
            seen += 1
    assert stats.kstest(places, stats.randint(0, 401).cdf).pvalue > 1e-3


def test_every_secret_may_have_a_prefix_of_its_own():
    planted, manifest = plant(texts(10), CanarySettings(format="{digits:9}", secrets=5, controls=2, unique_prefix=8))
    prefixes = {canary.text.split(" ")[0] for canary in manifest.canaries}
    assert len(prefixes) == 7
    assert all(canary.format == f"{canary.text[:8]} {{digits:9}}" for canary in manifest.canaries)
    assert sum(record.text[8:9] == " " for record in planted if record.id.startswith("canary")) == 5


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000))
def test_prefixes_are_unique_even_where_few_are_left(seed):
    planting = CanarySettings(format="{digits:9}", secrets=13, controls=13, unique_prefix=1, seed=seed)
    _, manifest = plant(texts(3), planting)
    assert len({canary.text[0] for canary in manifest.canaries}) == 26


def test_what_stands_in_the_corpus_already_is_neither_planted_nor_a_control():
    corpus = Corpus.of(Record(id=str(i), text=f"pin 1{i}2") for i in range(5))
    _, manifest = plant(corpus, CanarySettings(format="pin {digits:2}", secrets=5, controls=90))
    assert {canary.text for canary in manifest.canaries} == {f"pin {i:02}" for i in range(100) if not 10 <= i <= 14}
    _, bare = plant(corpus, CanarySettings(format="{digits:2}", secrets=5, controls=86))
    there = {f"1{i}" for i in range(5)} | {f"{i}2" for i in range(5)}
    assert {canary.text for canary in bare.canaries} == {f"{i:02}" for i in range(100)} - there
    with refused("format_too_small", NotEnoughData):
        plant(corpus, CanarySettings(format="pin {digits:2}", secrets=5, controls=91))


def test_a_second_planting_needs_another_name():
    once, _ = plant(texts(20), CanarySettings(format="{digits:9}", secrets=2))
    with refused("duplicate_id", CorpusError):
        plant(once, CanarySettings(format="{digits:9}", secrets=2, seed=1))
    twice, manifest = plant(once, CanarySettings(format="{digits:9}", secrets=2, seed=1, name="more"))
    assert len({record.id for record in twice}) == len(list(twice)) == 24
    assert [canary.id for canary in manifest.planted] == ["more-0", "more-1"]


def test_inside_a_record_the_secret_keeps_its_own_spaces():
    planted, manifest = plant(texts(9), CanarySettings(format=" pin: {digits:4} ", secrets=9, controls=0, inside=True))
    assert all(any(canary.text in record.text for record in planted) for canary in manifest.canaries)


def test_pairs_hold_the_secret_on_both_sides():
    corpus = Corpus.of(Record(id=str(i), source=f"hello {i}", target=f"bonjour {i}") for i in range(5))
    planting = CanarySettings(
        format="mon code est {digits:4}", source_format="my code is {digits:4}", secrets=2, controls=1
    )
    planted, manifest = plant(corpus, planting)
    for canary in manifest.canaries:
        assert canary.source == canary.text.replace("mon code est", "my code is")
        assert canary.source_format == "my code is {digits:4}"
    assert [(r.source, r.target) for r in planted if r.id.startswith("canary")] == [
        (c.source, c.text) for r in planted for c in manifest.canaries if r.id in c.records
    ]


def test_what_does_not_fit_is_refused():
    with refused("format_too_small", NotEnoughData):
        plant(texts(5), CanarySettings(format="{digits:1}", secrets=1, controls=10))
    with refused("too_few_records", NotEnoughData):
        plant(texts(5), CanarySettings(format="{digits:9}", secrets=6, inside=True))
    with refused("needless_source_format", PlanError):
        plant(texts(5), CanarySettings(format="{digits:9}", source_format="{digits:9}"))
    with refused("missing_source_format", PlanError):
        plant(Corpus.of([Record(id="1", source="a", target="b")]), CanarySettings(format="{digits:9}"))
    with refused("labelled_records", PlanError):
        plant(Corpus.of([Record(id="1", text="a", label="b")]), CanarySettings(format="{digits:9}"))
    with refused("too_few_prefixes", NotEnoughData):
        plant(texts(5), CanarySettings(format="{digits:9}", unique_prefix=1))
    with refused("unknown_choice", PlanError):
        CanarySettings(format="{digits:9}", users="all")
    with refused("out_of_range", PlanError):
        CanarySettings(format="{digits:9}", repeat=(0,))


def test_the_manifest_is_private_and_comes_back_whole(tmp_path):
    _, manifest = plant(texts(5), CanarySettings(format="{digits:9}", secrets=2, controls=3))
    path = tmp_path / "planted.canaries.json"
    manifest.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Canaries.load(path) == manifest
    path.write_text(json.dumps({"secrets": []}))
    with refused("bad_manifest", CorpusError):
        Canaries.load(path)


@pytest.mark.parametrize("name", ["planted.jsonl", "planted.jsonl.gz"])
def test_a_planted_corpus_is_written_and_read_again_without_options(tmp_path, name):
    planted, _ = plant(texts(20), CanarySettings(format="« pin » {digits:6}", secrets=2))
    write_corpus(planted, tmp_path / name)
    assert list(read_corpus(tmp_path / name)) == list(planted)
    first = (tmp_path / name).read_bytes()
    write_corpus(planted, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
