"""Every audit there is keeps the contract."""

from __future__ import annotations

import pytest

from recollect.audits.registry import AUDITS, audit_named
from recollect.errors import PlanError
from recollect.testing.contracts import check_audit


@pytest.mark.parametrize("name", AUDITS.table)
def test_every_audit_keeps_the_contract(name):
    check_audit(audit_named(name))


def test_an_unknown_audit_is_refused():
    with pytest.raises(PlanError, match="There is no audit 'palmistry'"):
        audit_named("palmistry")
