"""Who trains shadows and who calibrates."""

import pytest

from recollect.audits.provenance.reference_users import ARTIFICIAL, divide_reference
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.signals.evidence import AUDITED, CONTROLS, Evidence
from recollect.testing.fakes import Null
from recollect.testing.world import World

WORLD = World(controls=40)


def reference(corpora=WORLD.corpora, seed=0, **evidence):
    return divide_reference(Evidence(corpora=corpora, seed=seed, **evidence), shadows=4, share=0.25, artificial=50)


def members(found):
    return {name: found.cohorts.members(name) for name in found.shadows}


def test_no_shadow_sees_a_calibration_user_and_every_other_user_trains_half_of_them():
    found = reference()
    assert len(found.calibration) == 10
    trained = [user for name in found.shadows for user in found.cohorts.members(name)]
    assert not set(found.calibration).intersection(trained)
    assert {trained.count(user) for user in found.training} == {2}
    assert len(found.training) == 30


def test_shadows_do_not_depend_on_the_person_who_asks():
    another = {**WORLD.corpora, AUDITED: Corpus.of([Record(id="1", user="somebody", text="else")])}
    assert members(reference()) == members(reference(another))
    assert members(reference()) != members(reference(seed=1))


def test_a_corpus_without_users_gets_artificial_ones():
    corpus = Corpus.of(Record(id=str(i), text=f"text {i}") for i in range(400))
    found = reference({CONTROLS: corpus})
    assert found.role == ARTIFICIAL
    assert len(found.training) + len(found.calibration) == 40
    again = reference({CONTROLS: corpus, ARTIFICIAL: found.corpus})
    assert members(again) == members(found)


def test_shadows_that_are_given_are_taken_with_who_trained_them():
    users = sorted({record.owner for record in WORLD.corpora[CONTROLS]})
    mine = {"shadow-0": users[:5], "shadow-1": users[3:9]}
    cohorts = Cohorts.of(mine, units=users, unit="user", corpus=WORLD.corpora[CONTROLS].digest, seed=0)
    found = reference(models={"shadow-0": Null(), "shadow-1": Null()}, cohorts={CONTROLS: cohorts})
    assert found.shadows == ("shadow-0", "shadow-1")
    assert found.calibration == tuple(users[9:])


@pytest.mark.parametrize("controls", [1, 4])
def test_too_few_users_are_not_divided(controls):
    assert reference(World(controls=controls).corpora) is None
