"""Every audit there is keeps the contract."""

from __future__ import annotations

import pytest

from recollect.audits.registry import AUDITS, build_audit
from recollect.errors import PlanError
from recollect.testing.contracts import check_audit
from recollect.testing.world import World

OF_SECRETS = {"exposure", "extraction"}
"""They judge secrets, not people: tests/audits/exposure has their own nulls and truths."""

SETTINGS = {"provenance": {"shadows": 4}}
"""Settings that cost less than the usual ones, where that matters."""
WORLDS = {
    "provenance": World(members=12, others=12, controls=160),
    "leakage": World(seed=2),
    "membership": World(seed=1),
    "removal": World(seed=1),
}
"""Worlds with as many people as the audit needs, and in which both sides do not differ by chance."""


@pytest.mark.parametrize("name", sorted(AUDITS.table.keys() - OF_SECRETS))
def test_every_audit_keeps_the_contract(name):
    check_audit(build_audit(name, **SETTINGS.get(name, {})), WORLDS.get(name))


def test_an_unknown_audit_is_refused():
    with pytest.raises(PlanError, match=r"(?s)There is no audit 'palmistry'.*recollect\.register_audit"):
        build_audit("palmistry")


def test_a_setting_that_has_to_be_given_is_requested():
    with pytest.raises(PlanError, match="needs 'format'"):
        build_audit("extraction")
