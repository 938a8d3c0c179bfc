"""Near-duplicates between the audited and the controls, and between users, in any script."""

import itertools

import numpy as np
import pytest

from recollect.audits.common.duplicates import MIN_SIMILARITY, SHINGLE, find_duplicates
from recollect.audits.common.unicode_words import list_words
from recollect.corpora.record import Record

LONG = "we will meet at the old station in the morning and take the first train to the sea"


def texts(side, *rows):
    return [Record(id=f"{i}", user=f"{side}-{user}", text=text) for i, (user, text) in enumerate(rows)]


def dropped(audited, controls):
    found = find_duplicates(audited, controls)
    return sorted(found.audited), sorted(found.controls)


def test_a_text_on_both_sides_is_dropped_from_both():
    assert dropped(texts("a", (1, "Thank you!"), (1, "own")), texts("c", (1, "other"), (2, "thank  YOU"))) == (
        ["0"],
        ["1"],
    )


def test_a_text_of_two_users_of_one_side_is_dropped_and_one_of_a_single_user_stays():
    controls = texts("c", (1, "see you"), (2, "See you."), (3, "good night"), (3, "Good night!"))
    assert dropped(texts("a", (1, "own")), controls) == ([], ["0", "1"])


def test_copies_in_a_corpus_without_users_stay_unless_they_are_on_both_sides():
    audited = [Record(id=str(i), text="twice") for i in range(2)]
    assert dropped(audited, [Record(id="c", text="once")]) == ([], [])
    assert dropped(audited, [Record(id="c", text="twice")]) == (["0", "1"], ["c"])


def test_all_but_the_first_copy_without_a_user_are_left_out_if_own_copies_are():
    audited = [Record(id=str(i), text="twice" if i < 2 else f"once {i}") for i in range(4)]
    found = find_duplicates(audited, audited[3:], own=True)
    assert (sorted(found.audited), sorted(found.controls), found.texts) == (["1", "3"], ["3"], 1)


def test_long_texts_are_duplicates_if_most_of_their_shingles_are_common():
    near, far = LONG + " tomorrow", " ".join(reversed(LONG.split()))
    assert dropped(texts("a", (1, LONG)), texts("c", (1, near), (2, far))) == (["0"], ["0"])


def test_short_texts_must_be_equal():
    assert dropped(texts("a", (1, "meet me at the old station")), texts("c", (1, "meet me at the old stations"))) == (
        [],
        [],
    )


def test_text_without_spaces_is_compared_by_characters():
    long = "我们明天早上在老车站见面然后坐第一班火车去海边看日出"
    assert dropped(texts("a", (1, long)), texts("c", (1, long + "吧"), (2, long[::-1]))) == (["0"], ["0"])
    assert dropped(texts("a", (1, "谢谢你")), texts("c", (1, "谢谢你。"), (2, "谢谢"))) == (["0"], ["0"])


def test_empty_texts_equal_nothing_and_signs_equal_themselves():
    assert dropped(texts("a", (1, ""), (1, "😂")), texts("c", (1, ""), (2, "😂"), (3, "😢"))) == (["1"], ["1"])


def test_arrays_must_be_equal():
    one, other = np.zeros((2, 2)), np.ones((2, 2))
    audited = [Record(id="a", array=one, label=1)]
    controls = [Record(id="b", array=one, label=1), Record(id="c", array=other, label=1)]
    assert dropped(audited, controls) == (["a"], ["b"])


def test_the_source_of_a_pair_is_part_of_what_it_says():
    audited = [Record(id="a", source="eins", target="one")]
    assert dropped(audited, [Record(id="b", source="uno", target="one")]) == ([], [])


@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_is_what_comparing_every_pair_finds(seed):
    rng = np.random.default_rng(seed)
    words = np.array(LONG.split())
    rows = []
    for i in range(40):
        text = words.copy()
        text[rng.random(len(text)) < rng.choice([0.0, 0.02, 0.1])] = f"x{rng.integers(3)}"
        rows.append(Record(id=str(i), user=str(i), text=" ".join(text)))

    def shingles(record):
        listed = list_words(record.text)
        return {tuple(listed[i : i + SHINGLE]) for i in range(len(listed) - SHINGLE + 1)}

    sets = [shingles(record) for record in rows]
    similar = {
        i
        for pair in itertools.combinations(range(len(rows)), 2)
        if len(sets[pair[0]] & sets[pair[1]]) >= MIN_SIMILARITY * len(sets[pair[0]] | sets[pair[1]])
        for i in pair
    }
    found = find_duplicates(rows[:20], rows[20:])
    assert {int(i) for i in found.audited | found.controls} == similar
    assert 0 < len(similar) < len(rows)
