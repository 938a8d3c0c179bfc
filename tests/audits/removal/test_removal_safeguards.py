"""The sample of records that the blind baseline of removal sees."""

from types import SimpleNamespace

import numpy as np

from recollect.audits.removal.safeguards import find_like_controls, sample_guarded_records
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.signals.evidence import AUDITED, CONTROLS, Evidence
from recollect.signals.scores import Scores


def test_a_sample_does_not_depend_on_the_order_of_records():
    records = [Record(id=f"a{i}", text=f"text {i}") for i in range(60)]
    assert sample_guarded_records(Corpus.of(records)) == sample_guarded_records(Corpus.of(records[::-1]))
    assert [r.id for r in sample_guarded_records(Corpus.of(records), frozenset({"a7"}))] == ["a7"]


def test_who_has_less_than_most_is_compared_with_controls_that_have_as_little():
    def build(name, sizes, words):
        return [
            Record(id=f"{name}{i}-{j}", user=f"{name}{i}", text="word " * words)
            for i, size in enumerate(sizes)
            for j in range(size)
        ]

    audited = [*build("one", [1], 9), *build("usual", [8], 9), *build("short", [8], 2)]
    controls = [*build("few", [1] * 3, 9), *build("many", [8] * 50, 9), *build("brief", [8] * 3, 2)]
    corpora = {AUDITED: Corpus.of(audited), CONTROLS: Corpus.of(controls)}
    names = [tuple(dict.fromkeys(record.owner for record in side)) for side in (audited, controls)]
    sides = [Scores(each, each, np.zeros(len(each))) for each in names]
    scores = SimpleNamespace(audited=sides[0], controls=sides[1])
    like = find_like_controls(Evidence(corpora=corpora), scores)
    found = {user: {names[1][i] for i in np.flatnonzero(row)} for user, row in zip(names[0], like, strict=True)}
    assert {user: {name.rstrip("0123456789") for name in each} for user, each in found.items()} == {
        "one0": {"few"},
        "usual0": {"few", "many", "brief"},
        "short0": {"brief"},
    }
