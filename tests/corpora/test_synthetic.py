from __future__ import annotations

import pickle
from itertools import islice

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from recollect.corpora.digit_images import draw_digit_images
from recollect.corpora.synthetic import SECRET_EVERY, make_pairs, make_people, make_person, make_texts
from recollect.errors import PlanError
from recollect.testing.refusals import refused

MAKERS = [make_texts, make_pairs, draw_digit_images]


@pytest.mark.parametrize("make", MAKERS)
def test_records_follow_from_the_seed_and_not_from_how_many_there_are(make):
    few, many = (
        {r.id: r for r in make(people=3, per_person=4, seed=5)},
        {r.id: r for r in make(people=5, per_person=6, seed=5)},
    )
    assert len(few) == 12
    assert len(many) == 30
    assert all(many[name] == record for name, record in few.items())
    other = {r.id: r for r in make(people=3, per_person=4, seed=6)}
    assert sum(other[name] == record for name, record in few.items()) < 3


@pytest.mark.parametrize("make", MAKERS)
def test_corpora_are_made_as_they_are_read_and_travel_to_workers(make):
    endless = make(people=10**12, per_person=10**12)
    assert len(list(islice(endless, 5))) == 5
    small = make(people=2, per_person=3)
    again = pickle.loads(pickle.dumps(small))  # noqa: S301 - between processes, never a file
    assert again.digest == small.digest
    assert (small.summary.size, small.summary.users) == (6, 2)


def test_the_kinds():
    assert make_texts(people=1).summary.kind == "text"
    assert make_pairs(people=1).summary.kind == "pair"
    assert draw_digit_images(people=1).summary.kind == "labelled"


def test_people_differ_and_numbers_are_fictional():
    crowd = list(make_people(300, seed=0))
    assert crowd[7] == make_person(7, seed=0)
    assert len({who.secrets["passcode"] for who in crowd}) > 290
    assert len({who.favourites for who in crowd}) == 300
    for who in crowd:
        digits = [int(digit) for digit in who.secrets["card"].replace(" ", "")]
        doubled = [digit * 2 if i % 2 == 0 else digit for i, digit in enumerate(digits)]
        assert len(digits) == 16
        assert sum(digit - 9 if digit > 9 else digit for digit in doubled) % 10 == 0
        assert "-555-01" in who.secrets["phone"]
        assert who.secrets["email"].endswith("@example.org")


def test_secrets_are_reported_where_they_are_said_to_be():
    who = make_person(0, seed=0)
    said = [record.text for record in make_texts(people=1, per_person=60)]
    for j, kind in enumerate(who.secrets):
        assert who.secrets[kind] in said[SECRET_EVERY * j + 3]
        assert sum(who.secrets[kind] in text for text in said) == (2 if j == 0 else 1)


def test_each_person_uses_their_own_words():
    corpus = list(make_texts(people=20, per_person=20))
    own = other = 0
    for record in corpus:
        number = int(record.user.removeprefix("person-"))
        own += make_person(number, seed=0).city.lower() in record.text.lower()
        other += make_person((number + 1) % 20, seed=0).city.lower() in record.text.lower()
    assert own > 50
    assert other < 10


def test_drawn_digits_can_be_distinguished():
    corpus = list(draw_digit_images(people=60, per_person=10))
    x = np.stack([record.array for record in corpus]).reshape(len(corpus), -1) / 255
    y = np.array([record.label for record in corpus])
    assert x.shape == (600, 144)
    assert set(y) == set(range(10))
    # the last people are strangers to the classifier
    assert LogisticRegression(max_iter=200).fit(x[:400], y[:400]).score(x[400:], y[400:]) > 0.7


def test_drawings_have_the_size_requested():
    record = next(iter(draw_digit_images(people=1, per_person=1, size=28)))
    assert (record.array.shape, record.array.dtype) == ((28, 28), np.uint8)
    with refused("out_of_range", PlanError):
        draw_digit_images(people=1, size=8)
    with refused("out_of_range", PlanError):
        make_texts(people=0)
