"""Repetitions: the first copy stays, later ones go, as in a slow comparison of all with all."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora import Corpus, Record
from recollect.corpora.sanitisation import normalise_duplicate, sanitise_by_duplicates
from recollect.errors import PlanError
from recollect.testing.refusals import refused

WORDS = st.lists(st.sampled_from(["red", "Red", "blue", "ﬁne", "fine", "\u00a0"]), min_size=1, max_size=8)


def texts(*written: str) -> Corpus:
    return Corpus.of(Record(id=str(i), text=text) for i, text in enumerate(written))


def passages(text: str, count: int) -> set[tuple[str, ...]]:
    words = normalise_duplicate(text).split(" ")
    return {tuple(words[i : i + count]) for i in range(len(words) - count + 1)}


@settings(deadline=None, max_examples=150)
@given(st.lists(WORDS.map(" ".join), min_size=1, max_size=8), st.sampled_from([None, 2, 3]))
def test_it_keeps_what_a_slow_comparison_keeps(lines, passage):
    kept: list[int] = []
    for i, line in enumerate(lines):
        same = [j for j in kept if normalise_duplicate(lines[j]) == normalise_duplicate(line)]
        near = [j for j in kept if passage and passages(lines[j], passage) & passages(line, passage)]
        if not same and not near:
            kept.append(i)
    clean = sanitise_by_duplicates(texts(*lines), passage=passage)
    assert [int(record.id) for record in clean.corpus] == kept
    assert {change.record for change in clean.changes} == {str(i) for i in range(len(lines)) if i not in kept}
    assert all(
        int(change.duplicate_of) in kept and int(change.duplicate_of) < int(change.record) for change in clean.changes
    )


def test_capitals_white_space_and_compatible_characters_make_no_difference():
    clean = sanitise_by_duplicates(texts("Fine  weather", "ﬁne weather", "FINE WEATHER\u00a0", "fine-weather"))
    assert [record.id for record in clean.corpus] == ["0", "3"]
    assert [(change.record, change.duplicate_of) for change in clean.changes] == [("1", "0"), ("2", "0")]


def test_a_text_that_repeats_itself_is_no_repetition():
    assert sanitise_by_duplicates(texts("row row row row your boat", "gently"), passage=2).changes == ()


def test_pairs_and_labels_are_compared_whole():
    pairs = Corpus.of(
        Record(id=str(i), source=source, target=target)
        for i, (source, target) in enumerate([("a", "b"), ("a", "c"), ("ab", ""), ("A", "b")])
    )
    assert [record.id for record in sanitise_by_duplicates(pairs).corpus] == ["0", "1", "2"]
    labelled = Corpus.of(Record(id=str(i), text="a", label=label) for i, label in enumerate(["x", "y", "x"]))
    assert [record.id for record in sanitise_by_duplicates(labelled).corpus] == ["0", "1"]


def test_a_passage_of_one_word_is_refused():
    with refused("out_of_range", PlanError):
        sanitise_by_duplicates(texts("a"), passage=1)


def test_users_who_repeat_themselves_are_reported_from_users_who_repeat_others():
    rows = [("0", "ann", "hello there"), ("1", "ann", "Hello there"), ("2", "bob", "hello  there"), ("3", "bob", "bye")]
    found = sanitise_by_duplicates(Corpus.of([Record(id=i, user=user, text=text) for i, user, text in rows]))
    reasons = {"repeats an earlier record of the same user": 1, "repeats an earlier record of another user": 1}
    assert found.counts == reasons
