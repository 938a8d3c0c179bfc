"""Where the truth comes from: members that are given, else the cohorts of the audited corpus."""

import pytest

from recollect.audits.common.ground_truth import find_members, has_both
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.members import Members
from recollect.errors import PlanError
from recollect.signals.evidence import AUDITED, CONTROLS, Evidence
from recollect.testing.refusals import refused

GIVEN = Members(unit="record", members=frozenset({"1"}))


def cohorts(**members):
    named = {name.replace("_", "-"): chosen for name, chosen in members.items()}
    return Cohorts.of(named, units=["ann", "bob", "cid"], unit="user", corpus="…", seed=0)


def test_members_that_are_given_come_before_cohorts():
    assert find_members(Evidence(members=GIVEN, cohorts={AUDITED: cohorts(target=["ann"])})) is GIVEN


@pytest.mark.parametrize("name", ["target", "mine"])
def test_cohorts_tell_of_everybody(name):
    found = find_members(Evidence(cohorts={AUDITED: cohorts(**{name: ["ann"]}, shadow_0=["bob"])}))
    assert found == Members(unit="user", members=frozenset({"ann"}), non_members=frozenset({"bob", "cid"}))


@pytest.mark.parametrize("known", [{}, {AUDITED: cohorts(shadow_0=["ann"])}, {CONTROLS: cohorts(target=["ann"])}])
def test_where_nobody_tells_of_the_target_nothing_is_known(known):
    assert find_members(Evidence(cohorts=known)) is None


def test_several_models_without_a_target_are_refused():
    with refused("no_target_in_cohorts", PlanError):
        find_members(Evidence(cohorts={AUDITED: cohorts(a=["ann"], b=["bob"])}))


def test_both_sides_must_be_known_to_be_compared():
    assert not has_both(None)
    assert not has_both(GIVEN)
    assert has_both(find_members(Evidence(cohorts={AUDITED: cohorts(target=["ann"])})))
