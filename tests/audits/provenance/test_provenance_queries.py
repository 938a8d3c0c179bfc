"""Which texts are asked about, and that it is fixed beforehand."""

import math
from typing import get_args

import pytest

from recollect.audits.provenance.audit import ProvenanceAudit
from recollect.audits.provenance.queries import (
    CALIBRATION,
    PERSON,
    QUERIES,
    TRAINING,
    QuerySelector,
    Select,
    build_queries,
    choose_queries,
)
from recollect.audits.provenance.reference_users import divide_reference
from recollect.audits.provenance.word_frequencies import Frequencies, read_shadow_texts
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData, PlanError
from recollect.signals.evidence import AUDITED, CONTROLS, Evidence
from recollect.testing.refusals import refused
from recollect.testing.world import World

REFERENCE = Corpus.of([Record(id="r", user="x", text="the the the the cat cat sat")])


def texts(*written, user="ann"):
    return [Record(id=str(i), user=user, text=text) for i, text in enumerate(written)]


def order(select, records, seed=0, **more):
    selector = QuerySelector(select, Frequencies.of(REFERENCE, 100), seed, **more)
    return [record.text for record in selector.rank_texts(records)["ann"]]


def test_rarest_is_the_smallest_sum_of_counts_as_printed():
    assert order("rarest", texts("the cat", "sat", "cat sat", "the")) == ["sat", "cat sat", "the", "the cat"]


def test_rarest_ranks_is_the_largest_sum_of_places_as_in_the_authors_code():
    assert order("rarest-ranks", texts("the cat", "sat sat", "cat sat", "the")) == [
        "sat sat",
        "cat sat",
        "the cat",
        "the",
    ]


def test_surprise_is_the_information_of_all_different_known_words():
    known = Frequencies.of(REFERENCE, 2)  # 4 of "the" and 2 of "cat" among 7 words
    assert known.sum_information("The cat, the cat sat!") == pytest.approx(math.log(7 / 4) + math.log(7 / 2))
    assert order("surprise", texts("the the the", "cat sat", "the cat sat", "sat")) == [
        "the cat sat",
        "cat sat",
        "sat",
        "the the the",
    ]


def test_words_beyond_the_vocabulary_are_one_frequent_word():
    known = Frequencies.of(REFERENCE, 1)
    assert known.sum_counts("the") == 4
    assert known.sum_counts("cat") == known.sum_counts("never-seen".replace("-", "")) == 3


def test_a_random_choice_depends_on_the_seed_alone():
    records = texts(*(f"text {i}" for i in range(20)))
    assert order("random", records) == order("random", records[::-1])
    assert order("random", records) != order("random", records, seed=1)


@pytest.mark.parametrize("select", get_args(Select))
def test_neither_order_nor_repetition_changes_the_choice(select):
    records = texts("the cat", "sat", "sat", "cat sat", "the", " ")
    assert order(select, records) == order(select, records[::-1])
    assert sorted(order(select, records)) == ["cat sat", "sat", "the", "the cat"]


def test_texts_that_a_shadow_may_have_seen_are_not_asked_about():
    records = texts("the cat", "sat")
    assert order("rarest", records, excluded={records[1].digest}) == ["the cat"]


def test_a_file_without_users_is_one_person():
    selector = QuerySelector("rarest", Frequencies.of(REFERENCE, 100), 0)
    assert list(selector.rank_texts([Record(id="1", text="the"), Record(id="2", text="cat")])) == [PERSON]


def test_the_first_texts_of_everybody_are_scored_in_the_order_of_choice():
    chosen = {"bob": texts("a", "b", "c", user="bob"), "ann": texts("d", user="ann")}
    assert [record.text for record in build_queries(chosen, 2, name="x")] == ["d", "a", "b"]


def plan(controls=80, people=None, **settings):
    world = World(members=1, others=1, controls=controls)
    corpora = world.corpora if people is None else {**world.corpora, AUDITED: Corpus.of(people)}
    audit, evidence = ProvenanceAudit(shadows=4, **settings), Evidence(corpora=corpora)
    return choose_queries(
        audit, evidence, divide_reference(evidence, shadows=4, share=audit.calibration, artificial=60)
    )


def test_the_budget_is_a_hard_limit():
    corpora = plan(budget=66)
    assert len(corpora[QUERIES]) + len(corpora[CALIBRATION]) <= 66
    assert len(corpora[CALIBRATION]) == 60
    assert len(plan()[CALIBRATION]) == 60
    assert len(plan(controls=100, budget=66)[CALIBRATION]) == 60
    assert len(plan(controls=100)[CALIBRATION]) == 75


def test_a_budget_that_does_not_reach_is_refused_with_one_that_does():
    with refused("budget_too_small", PlanError) as refusal:
        plan(budget=62)
    assert " 63 " in refusal.error.do
    assert plan(budget=63)


def test_nobody_is_scored_more_than_the_queries():
    corpora = plan(queries=1, method="histogram")
    assert [len(corpora[part]) for part in (QUERIES, CALIBRATION, TRAINING)] == [2, 20, 60]


def test_others_are_scored_no_more_texts_than_the_longest_person_has():
    corpora = plan(people=texts("word1 word2"), method="histogram")
    assert [len(corpora[part]) for part in (QUERIES, CALIBRATION, TRAINING)] == [1, 20, 60]


@pytest.mark.parametrize(("written", "evened"), [(1, True), (3, False)])
def test_queries_are_chosen_out_of_as_many_texts_on_both_sides(written, evened):
    """A person's only text beside the most surprising of three of each other person would be unlike for that alone."""
    world = World(members=1, others=0, controls=80)
    corpora, found = reference_of(world)
    person = Corpus.of(list(world.corpora[AUDITED])[:written])
    audit = ProvenanceAudit(shadows=4, queries=1)
    chosen = choose_queries(audit, Evidence(corpora={**corpora, AUDITED: person}), found)[CALIBRATION]
    known = read_shadow_texts(found, audit.vocabulary)
    selector = QuerySelector(audit.select, known.frequencies, 0, known.digests)
    best = selector.rank_texts(found.corpus, frozenset(found.calibration))
    first = [best[record.owner][0].id == record.id for record in chosen]
    assert len(first) == 20
    assert (1 <= sum(first) <= 14) == evened
    assert all(first) != evened


def test_too_few_calibration_users_are_refused_with_the_number_that_would_do():
    with refused("too_few_controls", NotEnoughData) as refusal:
        plan(controls=60)
    assert refusal.error.needed == 76
    assert CONTROLS not in plan(controls=76)


def reference_of(world, more=()):
    corpora = {CONTROLS: Corpus.of([*world.corpora[CONTROLS], *more])}
    found = divide_reference(Evidence(corpora=corpora), shadows=4, share=0.25, artificial=60)
    return corpora, found


def test_calibration_users_are_treated_as_the_audited_people_are():
    """What they wrote neither makes words frequent nor texts taboo; what a shadow may have seen is nobody's query."""
    world = World(members=1, others=0, controls=80)
    _, plain = reference_of(world)
    calibrating, training = plain.calibration[0], plain.training[0]
    said = next(record.text for record in world.corpora[CONTROLS] if record.owner == training)
    unheard = Record(id="a", user=calibrating, text="zymurgy " * 9)
    echo = Record(id="b", user=calibrating, text=said)
    corpora, found = reference_of(world, [unheard, echo])
    known = read_shadow_texts(found, 5000)
    assert "zymurgy" not in known.frequencies.counts
    assert unheard.digest not in known.digests
    assert echo.digest in known.digests
    person = Corpus.of(Record(id=str(i), text=text) for i, text in enumerate([said, "another zymurgy", "x", "y"]))
    evidence = Evidence(corpora={**corpora, AUDITED: person})
    chosen = choose_queries(ProvenanceAudit(shadows=4, queries=None, select="rarest"), evidence, found)
    assert [record.id for record in chosen[QUERIES]] == ["1", "2", "3"]
    assert "b" not in {record.id for record in chosen[CALIBRATION]}
    assert "a" in {record.id for record in chosen[CALIBRATION]}


def test_a_reference_is_read_once_for_choosing_and_judging():
    world, passes = World(members=1, others=1, controls=80), []
    controls = Corpus("counted", lambda: passes.append(1) or iter(world.corpora[CONTROLS]))
    evidence = Evidence(corpora={**world.corpora, CONTROLS: controls})
    found = divide_reference(evidence, shadows=4, share=0.25, artificial=60)
    before = len(passes)
    first = read_shadow_texts(found, 5000)
    assert len(passes) == before + 1
    assert read_shadow_texts(found, 5000) is first
    assert len(passes) == before + 1
    assert read_shadow_texts(found, 3) is not first
