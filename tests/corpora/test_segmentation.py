from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora import Corpus, Record, Split, read_corpus
from recollect.corpora.segmentation import split_sentences, split_windows
from recollect.errors import PlanError
from recollect.testing.refusals import refused

# What is between bars is one sentence.
CASES = {
    "plain": "It rained. |We stayed in! |Did you?",
    "titles": "Dr. Hall met Mrs. Ray and Prof. Lee. |They left.",
    "decimals": "He took 2.5 mg at 37.2 degrees. |Version 3.1.4 is out.",
    "initials": "J. R. R. Tolkien and C. S. Lewis met. |They talked.",
    "the word I": "So did I. |Then we left.",
    "acronyms": "The U.S. Army came. |It left.",
    "times of day": "At 8 p.m. the bell rang. |At 9 a.m. it rang again.",
    "times that end": "It was 8 p.m. |The bell rang.",
    "doses": "Aspirin 81 mg p.o. q.d. for pain. |Warfarin 5 mg b.i.d. |Follow up.",
    "latin": "Fruit, e.g. apples, i.e. food, etc. and more. |Smith et al. 2019 agree.",
    "number sign": "See No. 5 and Fig. 3. |No. |I will not.",
    "months": "On Jan. 5 it snowed. |In Feb. it did not.",
    "companies": "Acme Inc. makes it. |We like Acme Inc. |They know.",
    "ellipsis": "Well... maybe not. |Well... |Maybe. |Oh… |Fine.",
    "quotes": 'He said "Go." |Then he left. |"Stop!" she cried. |(Nobody heard.) |So it was.',
    "quoted question": '"Really?" he asked. |Yes.',
    "several marks": "What?! |No!!! |Yes.",
    "urls and files": "See www.example.org/a.html for more. |Open notes.txt now.",
    "inline list": "1. Hypertension. |2. Diabetes. |3. Obesity.",
    "list of lines": "PLAN:\n|1. Rest at home.\n|2. Fluids.\n|- Call us\n|- Come back\n|a) or not",
    "quoted list": "> 1. Rest. |> 2. Fluids.",
    "headings": "ALLERGIES: None.\n|MEDICATIONS: Aspirin\n|History: no change",
    "wrapped lines": "This is a line of mail that a program has wrapped\nin the middle, and Mr. Bond\nsaw it. |Next.",
    "wrapped before a name": "We all went by train, and after a long ride we came to\nParis in the rain. |Fine.",
    "short lines": "Roses are red\n|Violets are blue",
    "paragraphs": "no end mark here\n\n|and a new paragraph\n \n|third",
    "commas for line breaks": "The aorta is normal.,|2.  The valve is thick.,|IMPRESSION: Fine.",
    "lower case": "i went home. |then i slept. |ok",
    "chinese": "今天下雨。|我们在家！|你呢？|好。",
    "japanese quotes": "「行こう。」|彼は言った。|「ええ！」",
    "hindi": "यह घर है। |वह गया।",
    "arabic": "هل أنت هنا؟ |نعم.",
    "russian": "Он ушёл. |Она осталась! |Почему?",
    "armenian": "Բարև։ |Ցտեսություն։",
    "no end": "just some words",
    "only marks": "...",
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_sentences(case):
    expected = [piece.strip() for piece in case.split("|")]
    assert split_sentences(case.replace("|", "")) == expected


texts = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(["Dr.", "1.", "word", "Word", ".", "!", "\n", "\n\n", " ", "。", "e.g.", '"', "5", "-"])
    ).map(" ".join),
)


@settings(deadline=None)
@given(text=texts, split=st.builds(Split, by=st.sampled_from(["sentences", "windows"]), words=st.integers(1, 5)))
def test_pieces_are_exact_parts_in_order_and_only_white_space_is_lost(text, split):
    at = 0
    for piece in split(text):
        assert piece == piece.strip() != ""
        found = text.index(piece, at)
        assert not text[at:found].strip()
        at = found + len(piece)
    assert not text[at:].strip()


@settings(deadline=None)
@given(text=texts, words=st.integers(1, 5))
def test_windows_equal_their_slow_twin(text, words):
    pieces = split_windows(text, words)
    split = text.split()
    assert [piece.split() for piece in pieces] == [split[i : i + words] for i in range(0, len(split), words)]


@settings(deadline=None)
@given(text=texts)
def test_sentences_split_again_stay_whole_where_they_have_one_line(text):
    for sentence in split_sentences(text.replace("\n", " ")):
        if sentence.lower() != sentence or text.lower() == text:  # a piece may lose the capital letters around it
            assert split_sentences(sentence) == [sentence]


@pytest.mark.parametrize("row", [".", ". ", "\n", "\n x", "a.", "Dr. ", "。", "(", " ", ".)", '."', "A"])
def test_long_rows_of_one_kind_take_no_more_than_their_share_of_time(row):
    text = row * (200_000 // len(row)) + "x"
    start = time.process_time()
    assert "".join(split_sentences(text)).split() != []
    assert time.process_time() - start < 3, "200,000 characters take well under a second where time is linear"


def test_pieces_keep_their_user_and_label_and_name_their_parent():
    whole = [
        Record(id="n1", user="ann", text="One. Two.", label=3),
        Record(id="n2", user="bob", text="Three.", label=4),
    ]
    pieces = list(Split().split_records(whole, Counter()))
    assert [(p.id, p.user, p.text, p.label) for p in pieces] == [
        ("n1#1", "ann", "One.", 3),
        ("n1#2", "ann", "Two.", 3),
        ("n2#1", "bob", "Three.", 4),
    ]


def test_pieces_that_are_too_short_are_dropped_and_counted(write):
    path = write("a.jsonl", [{"id": "a", "text": "No. He came back. Yes."}, {"id": "b", "text": "We all went home."}])
    corpus = read_corpus(path, split=Split(minimum=3))
    assert [(r.id, r.text) for r in corpus] == [("a#2", "He came back."), ("b#1", "We all went home.")]
    assert corpus.skipped == {"short_piece": 2}
    windowed = read_corpus(path, split=Split(by="windows", words=2, minimum=2))
    assert [r.id for r in windowed] == ["a#1", "a#2", "b#1", "b#2"]


def test_a_running_text_becomes_windows(write):
    path = write("a.txt", "one two\nthree four five\n")
    corpus = read_corpus(path, running_text=True, split=Split(by="windows", words=2))
    assert [(r.id, r.text) for r in corpus] == [("1#1", "one two"), ("1#2", "three four"), ("1#3", "five")]


def test_duplicate_ids_are_found_before_texts_are_split(write):
    path = write("a.jsonl", [{"id": "a", "text": "One. Two."}, {"id": "a", "text": "z"}])
    corpus = read_corpus(path, split=Split(), skip_bad=True)
    assert ([r.id for r in corpus], corpus.skipped) == (["a#1", "a#2"], {"duplicate_id": 1})


def test_settings_are_checked():
    with refused("unknown_choice", PlanError):
        Split(by="sentence")
    with refused("out_of_range", PlanError):
        Split(by="windows", words=0)


def test_the_corpus_in_memory_can_be_split_as_well():
    whole = Corpus.of([Record(id="1", text="A. B.")])
    assert [piece.id for piece in Split(by="windows", words=1).split_records(whole, Counter())] == ["1#1", "1#2"]
