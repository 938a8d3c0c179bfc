"""The guard: it holds its rate where two sides are exchangeable, and sees what makes them differ."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from recollect.audits.common.amounts import Piece, Unit
from recollect.audits.common.guard import (
    add_guard,
    check_comparable,
    check_matched,
    check_matched_maxima,
    explains_scores,
)
from recollect.audits.common.matched_records import cut_matched_records
from recollect.audits.common.matching import match_units
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.membership.audit import MembershipAudit
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData
from recollect.signals.scores import Scores
from recollect.testing.refusals import refused

WORDS = np.array([f"word{i}" for i in range(400)])
START = datetime(2026, 1, 1, tzinfo=UTC)


def write(rng, user, *, records=4, first=0, mean=2.0, day=0, spaces=" "):
    """The records of one user: heavy-tailed lengths, some words of their own, dates over one month."""
    own = rng.integers(0, 300, 8)
    made = []
    for i in range(records):
        length = max(1, int(rng.lognormal(mean, 0.7)))
        chosen = np.where(rng.random(length) < 0.3, rng.choice(own, length), rng.integers(0, 300, length)) + first
        time = START + timedelta(days=day + float(rng.random()) * 30)
        made.append(Record(id=f"{user}-{i}", user=user, text=spaces.join(WORDS[chosen % 400]), time=time))
    return made


def world(seed, k, n, amount=None, **audited):
    """Audited and controls; amounts scatter unless they are given."""
    rng = np.random.default_rng(seed)

    def draw(user, **settings):
        records = amount or min(30, int(np.ceil(rng.pareto(1.5))) + 1)
        return write(rng, user, **{"records": records, **settings})

    one = [record for i in range(k) for record in draw(f"a{i}", **audited)]
    return one, [record for i in range(n) for record in draw(f"c{i}")]


def different(found):
    return {check.name for check in found.guard.checks if not check.comparable}


@pytest.mark.parametrize("k", [1, 3, 20])
@pytest.mark.parametrize(
    ("name", "audited"),
    [
        ("date", {"day": 60}),
        ("length", {"mean": 4.5}),
        ("records", {"records": 200}),
        ("unknown_words", {"first": 10_000}),
    ],
)
def test_what_differs_is_named(k, name, audited):
    if name == "unknown_words":
        one, other = world(1, k, 40, amount=4)
        one = [Record(id=r.id, user=r.user, text=f"{r.id} {r.id}x {r.id}y", time=r.time) for r in one]
    else:
        one, other = world(1, k, 40, amount=None if name == "records" else 4, **audited)
    found = check_comparable(one, other, by="user", seed=0)
    assert name in different(found)
    assert "Take controls" in found.reason


@pytest.mark.parametrize("k", [3, 20])
def test_another_topic_is_seen(k):
    assert different(check_comparable(*world(2, k, 60, amount=6, first=100), by="user", seed=0)) & {
        "vocabulary",
        "unknown_words",
    }


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize(("first", "count"), [(0x4E00, 300), (0x3041, 160), (0x0E01, 46)], ids=["zh", "ja", "th"])
def test_text_without_spaces_is_guarded(k, first, count):
    rng = np.random.default_rng(0)
    signs = [chr(first + i) for i in range(count)]

    def say(user, pool):
        return [Record(id=f"{user}-{i}", user=user, text="".join(rng.choice(pool, 30))) for i in range(4)]

    controls = [r for i in range(40) for r in say(f"c{i}", signs[: count // 2])]
    alike = [r for i in range(k) for r in say(f"a{i}", signs[: count // 2])]
    other = [r for i in range(k) for r in say(f"a{i}", signs[count // 2 :])]
    assert check_comparable(alike, controls, by="user", seed=0).comparable
    assert "unknown_words" in different(check_comparable(other, controls, by="user", seed=0)) or "vocabulary" in (
        different(check_comparable(other, controls, by="user", seed=0))
    )


@pytest.mark.parametrize("text", ["", "always the same words", "😂"])
def test_texts_that_are_all_equal_are_comparable(text):
    def say(side, users):
        return [Record(id=f"{side}{i}", user=f"{side}{i}", text=text) for i in range(users)]

    found = check_comparable(say("a", 6), say("c", 30), by="user", seed=0)
    assert found.comparable
    assert all(check.p_value == 1 for check in found.guard.checks)


def test_arrays_and_labels_are_compared():
    rng = np.random.default_rng(0)

    def draw(side, count, shift=0.0, labels=(0, 1)):
        return [
            Record(id=f"{side}{i}", array=rng.random((3, 3)) + shift, label=int(rng.choice(labels)))
            for i in range(count)
        ]

    controls = draw("c", 60)
    assert check_comparable(draw("a", 20), controls, by="record", seed=0).comparable
    assert "content" in different(check_comparable(draw("a", 20, 0.5), controls, by="record", seed=0))
    assert "labels" in different(check_comparable(draw("a", 20, labels=(1,)), controls, by="record", seed=0))
    builder = ResultBuilder(MembershipAudit())
    add_guard(builder, check_comparable(draw("a", 20), controls, by="record", seed=0))
    assert builder.build(verdict="Made up.", outcome="not_found").note_codes == ()  # an image has no time to compare


def test_a_blind_baseline_that_separates_as_well_as_the_model_explains_the_scores():
    one, other = world(3, 30, 60, amount=6, first=100)
    found = check_comparable(one, other, by="user", seed=0)
    assert not isinstance(found.blind_auc, NotEnoughData)
    assert found.blind_auc.value > 0.8
    assert found.blind_p <= 0.05
    rng = np.random.default_rng(0)
    weak = [Scores.of(side, lambda _, up=up: up + rng.normal(0, 2)) for side, up in ((one, 0.5), (other, 0.0))]
    assert explains_scores(found, *weak)
    alike = check_comparable(*world(3, 30, 60, amount=6), by="user", seed=0)
    assert abs(alike.blind_auc.value - 0.5) < 0.2
    assert not explains_scores(alike, *weak)


def test_scores_beyond_a_weak_blind_baseline_are_not_explained():
    one, other = world(4, 40, 80, amount=6, first=20)
    found = check_comparable(one, other, by="user", seed=0)
    assert found.blind_p <= 0.05
    strong = [Scores.of(side, lambda _, up=up: up) for side, up in ((one, 1.0), (other, 0.0))]
    assert found.blind_auc.value < 1
    assert not explains_scores(found, *strong)


def match(audited, controls, by="user"):
    def unit(side):
        grouped = {}
        for record in side:
            grouped.setdefault(record.owner if by == "user" else record.id, []).append(record)
        return [
            Unit(
                name=name,
                owner=records[0].owner,
                pieces=tuple(Piece(record=r.id, tokens=len(r.text.split())) for r in records),
            )
            for name, records in grouped.items()
        ]

    return match_units(unit(audited), unit(controls), seed=0)


@pytest.mark.parametrize("by", ["user", "record"])
@pytest.mark.parametrize("records", [1, 2])
def test_after_matching_users_with_few_records_are_comparable(by, records):
    rng = np.random.default_rng(5)
    one = [record for i in range(12) for record in write(rng, f"a{i}", records=records)]
    other = [record for i in range(80) for record in write(rng, f"c{i}", records=20)]
    assert "records" in different(check_comparable(one, other, by="user", seed=0))
    found = check_matched(match(one, other, by), one, other, seed=0)
    assert found.comparable
    assert {check.name for check in found.guard.checks} == {
        *("unknown_words", "vocabulary", "style", "date", "separability")
    }
    topic = [record for i in range(12) for record in write(rng, f"a{i}", records=records, first=150)]
    assert not check_matched(match(topic, other, by), topic, other, seed=0).comparable


def test_what_is_truncated_is_compared_as_far_as_it_is_kept():
    rng = np.random.default_rng(6)
    one = [Record(id=f"a{i}", text=" ".join(rng.choice(WORDS, 6))) for i in range(30)]
    other = [Record(id=f"c{i}", text=" ".join(rng.choice(WORDS, 60))) for i in range(90)]
    (stratum,) = cut_matched_records(match(one, other), one, other)
    assert {len(record.text.split()) for (record,) in stratum.controls.values()} == {6}
    assert check_matched(match(one, other), one, other, seed=0).comparable
    assert not check_comparable(one, other, by="record", seed=0).comparable


def test_the_end_of_texts_is_compared_where_controls_are_truncated():
    rng = np.random.default_rng(9)
    one = [Record(id=f"a{i}", text=" ".join(rng.choice(WORDS, 6)) + " Mrs Example") for i in range(40)]
    other = [Record(id=f"c{i}", text=" ".join(rng.choice(WORDS, 30))) for i in range(90)]
    assert {"style", "vocabulary"} & different(check_matched(match(one, other), one, other, seed=0))


def test_how_much_users_repeat_is_compared_where_a_score_is_a_maximum():
    """Eight variants of one text, one word changed in each, have as many words as eight texts."""
    rng = np.random.default_rng(5)

    def vary(user):
        text = rng.choice(WORDS, 12)
        for i in range(8):
            text[rng.integers(12)] = rng.choice(WORDS)
            yield Record(id=f"{user}-{i}", user=user, text=" ".join(text))

    free = [
        Record(id=f"a{u}-{i}", user=f"a{u}", text=" ".join(rng.choice(WORDS, 12))) for u in range(6) for i in range(8)
    ]
    varied = [record for u in range(40) for record in vary(f"c{u}")]
    matching = match(free, varied)
    found = check_matched_maxima(matching, free, varied, seed=0)
    assert "repetition" in different(found)
    assert "who repeat themselves as much" in found.reason
    assert all(check.name != "repetition" for check in check_matched(matching, free, varied, seed=0).guard.checks)


def test_the_order_of_records_changes_nothing():
    one, other = world(6, 5, 30)
    first, second = (check_comparable(*sides, by="user", seed=0) for sides in ((one, other), (one[::-1], other[::-1])))
    assert [c.p_value for c in first.guard.checks] == pytest.approx([c.p_value for c in second.guard.checks])
    assert first.blind_p == pytest.approx(second.blind_p)


def test_a_result_tells_the_guard_and_withholds_what_means_nothing():
    builder = ResultBuilder(MembershipAudit())
    builder.add_p_value("training_p", 0.001, n={"users": 3}, method="made up", reading="Made up.")
    one, other = world(7, 6, 40, amount=4, mean=4.5)
    one, other = ([Record(id=r.id, user=r.user, text=r.text) for r in side] for side in (one, other))
    add_guard(builder, check_comparable(one, other, by="user", seed=0), withheld=["training_p"])
    result = builder.build(verdict="Cannot be determined.", outcome="inconclusive", code="not_comparable")
    assert [each.finding for each in result.withheld] == ["training_p"]
    assert [each.name for each in result.findings] == ["blind_auc"]
    assert result.note_codes == ("periods_not_compared",)
    assert result.guard is not None
    assert not result.guard.comparable


def test_sides_that_cannot_be_compared_are_refused():
    one, other = world(8, 1, 3)
    with refused("too_few_records", NotEnoughData):
        check_comparable([], other, by="user", seed=0)
    with refused("too_few_controls", NotEnoughData):
        check_comparable(one, [], by="user", seed=0)


@pytest.mark.parametrize("undated", [0, 1])
@pytest.mark.parametrize("share", [0.9, 1.0])
def test_times_missing_on_one_side_are_no_other_period_and_the_note_says_so(undated, share):
    sides, rng = list(world(1, 20, 40, amount=4)), np.random.default_rng(0)
    sides[undated] = [replace(r, time=None) if rng.random() < share else r for r in sides[undated]]
    found = check_comparable(*sides, by="user", seed=0)
    assert found.comparable
    builder = ResultBuilder(MembershipAudit())
    add_guard(builder, found)
    note = next(each.text for each in builder.notes if each.code == "periods_not_compared")
    assert f"of the records of the {'audited' if undated == 0 else 'controls'}" in note
    assert "Times are missing" in note
    assert ("not compared" in note) is (share == 1)
    assert "Give times for both sides" in note


def test_another_period_is_seen_though_half_of_the_audited_lack_times():
    one, other = world(1, 20, 40, amount=4, day=60)
    one = [replace(r, time=None) if i % 8 < 4 else r for i, r in enumerate(one)]
    found = check_comparable(one, other, by="user", seed=0)
    assert "date" in different(found)


def test_the_order_of_records_does_not_change_the_last_digit():
    one, other = world(3, 12, 30, amount=7)
    rng = np.random.default_rng(0)
    found = check_comparable(one, other, by="user", seed=0)
    for _ in range(3):
        shuffled = ([side[i] for i in rng.permutation(len(side))] for side in (one, other))
        again = check_comparable(*shuffled, by="user", seed=0)
        assert again.guard == found.guard
        assert again.blind == found.blind
