"""Sanitising: what was to go is gone, everything else is as it was, and each change says why."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora import Corpus, Record
from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.canaries.matcher import Matcher
from recollect.corpora.sanitisation import PLACEHOLDER, sanitise_by_format, sanitise_by_scores
from recollect.errors import NotEnoughData, PlanError
from recollect.testing.refusals import refused

PIN = "my pin is {digits:6}"


def texts(*written: str) -> Corpus:
    return Corpus.of(Record(id=str(i), user="ann", text=text) for i, text in enumerate(written))


@pytest.mark.parametrize("inside", [False, True])
def test_all_copies_of_planted_secrets_go_and_nothing_else(inside):
    corpus = texts(*(f"just some words {i} and my pin is 12345" for i in range(60)))
    planted, canaries = plant(corpus, CanarySettings(format=PIN, secrets=3, repeat=(1, 4), inside=inside))
    clean = sanitise_by_format(planted, [parse_format(PIN)])
    held = {record for canary in canaries.planted for record in canary.records}
    assert list(clean.corpus) == [record for record in planted if record.id not in held]
    assert {change.record for change in clean.changes} == held
    assert clean.removed == len(clean.changes) == 15
    assert clean.counts == {f"holds the format {PIN!r}": 15}


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(["{digits:2}", "a{digits:1}a", "{letters:1}-{digits:1}", "{choice:b|ba}1", "0{hex:1}0"]),
    st.lists(st.text(alphabet="ab01- ", min_size=1, max_size=20), min_size=1, max_size=4),
)
def test_after_masking_nothing_matches_and_what_never_matched_is_untouched(written, lines):
    format, corpus = parse_format(written), texts(*lines)
    clean = sanitise_by_format(corpus, [format], mask=True)
    changed = {change.record for change in clean.changes}
    for before, after in zip(corpus, clean.corpus, strict=True):
        assert after.text not in Matcher(format)
        assert (after.id, after.user) == (before.id, before.user)
        assert (before.id in changed) == (before.text in Matcher(format)) == (after.text != before.text)
    assert all(change.action == "masked" for change in clean.changes)


def test_a_mask_covers_the_slots_and_leaves_the_known_text():
    clean = sanitise_by_format(texts("so my pin is 123456, ok"), [parse_format(PIN)], mask=True)
    assert [record.text for record in clean.corpus] == [f"so my pin is {PLACEHOLDER}, ok"]
    between = sanitise_by_format(texts("tel 12-34."), [parse_format("tel {digits:2}-{digits:2}.")], mask=True)
    assert [record.text for record in between.corpus] == [f"tel {PLACEHOLDER}."]


def test_both_sides_of_a_pair_are_looked_at():
    corpus = Corpus.of(
        [
            Record(id="s", source="my pin is 123456", target="rien"),
            Record(id="t", source="nothing", target="my pin is 123456"),
            Record(id="n", source="nothing", target="rien"),
        ]
    )
    assert [record.id for record in sanitise_by_format(corpus, [parse_format(PIN)]).corpus] == ["n"]
    masked = list(sanitise_by_format(corpus, [parse_format(PIN)], mask=True).corpus)
    assert (masked[0].source, masked[1].target) == (f"my pin is {PLACEHOLDER}",) * 2
    assert masked[2] == list(corpus)[2]


def test_several_formats_are_distinguished():
    corpus = texts("pin 1234", "code ab", "nothing", "pin 1234 code ab")
    clean = sanitise_by_format(corpus, [parse_format("pin {digits:4}"), parse_format("code {letters:2}")])
    assert [record.text for record in clean.corpus] == ["nothing"]
    assert clean.counts == {"holds the format 'pin {digits:4}'": 2, "holds the format 'code {letters:2}'": 1}


def test_a_corpus_of_which_nothing_would_be_left_is_refused():
    with refused("nothing_left", NotEnoughData):
        sanitise_by_format(texts("1", "2"), [parse_format("{digits:1}")])


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=30), st.floats(0.01, 0.9))
def test_the_highest_scores_go(values, share):
    corpus = texts(*map(str, values))
    scores = {str(i): float(value) for i, value in enumerate(values)}
    try:
        clean = sanitise_by_scores(corpus, scores, share=share, reason="high")
    except NotEnoughData:
        return
    gone = {change.record: change.score for change in clean.changes}
    kept = [record.id for record in clean.corpus]
    assert share * len(values) <= len(gone) < share * len(values) + 1
    assert min(gone.values()) >= max(scores[record] for record in kept)
    assert all(scores[record] == score for record, score in gone.items())


def test_records_without_a_score_stay_and_a_share_is_one():
    corpus = texts("a", "b", "c", "d")
    clean = sanitise_by_scores(corpus, {"1": 0.5, "2": 9.0}, share=0.75, reason="high")
    assert [record.id for record in clean.corpus] == ["0", "3"]
    for share in (0, 1, -0.1, 2):
        with refused("out_of_range", PlanError):
            sanitise_by_scores(corpus, {}, share=share, reason="high")
