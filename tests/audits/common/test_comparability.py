"""Two sides that are compared: separable by their words, by how these are written, or not at all."""

import numpy as np
import pytest

from recollect.audits.common.comparability import SHIFT_ALPHA, measure_separability, sample_records
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData
from recollect.testing.refusals import refused


def written(name, words, people=20, each=3, seed=0):
    rng = np.random.default_rng(seed)
    return [
        Record(id=f"{name}{person}-{i}", user=f"{name}{person}", text=" ".join(rng.choice(words, 10)))
        for person in range(people)
        for i in range(each)
    ]


WORDS = [f"w{i}" for i in range(60)]


def test_sides_that_write_alike_are_not_separable_and_others_are():
    alike = measure_separability(written("a", WORDS, seed=1), written("b", WORDS, seed=2), confidence=0.95)
    other = measure_separability(written("a", WORDS, seed=1), written("b", WORDS[20:], seed=2), confidence=0.95)
    assert alike.p > SHIFT_ALPHA >= other.p
    assert other.effect.value > 0.9


def test_arrays_are_separated_by_their_values():
    rng = np.random.default_rng(0)

    def drawn(name, shift):
        return [Record(id=f"{name}{i}", array=rng.random((3, 3)) + shift, label=0) for i in range(40)]

    assert measure_separability(drawn("a", 0), drawn("b", 0.5), confidence=0.95).p <= SHIFT_ALPHA


@pytest.mark.parametrize(("one", "other"), [(0, 0), (0, 20), (20, 0), (1, 20)])
def test_too_few_records_are_refused(one, other):
    with refused("too_few_records", NotEnoughData):
        measure_separability(
            written("a", WORDS, people=one, each=1), written("b", WORDS, people=other, each=1), confidence=0.95
        )


def test_a_sample_does_not_depend_on_the_order_of_records():
    records = written("a", WORDS)
    assert sample_records(Corpus.of(records)) == sample_records(Corpus.of(records[::-1]))
    assert [r.id for r in sample_records(Corpus.of(records), frozenset({"a0-0"}))] == ["a0-0"]
