"""What a plan leaves unsaid and the model itself tells: the claim on its card, and an adapter's base."""

from __future__ import annotations

import json

import pytest

from recollect.audits.leakage.audit import LeakageAudit
from recollect.audits.membership.audit import MembershipAudit
from recollect.pipeline.plans.natural_defaults import add_card_claim, add_natural_reference
from recollect.pipeline.plans.refs import ModelRef
from recollect.signals.evidence import TARGET

CARD = {"privacy": {"epsilon": 3.9, "delta": 1e-4, "unit": "user"}}


def claim(folder, **settings):
    audit = add_card_claim(MembershipAudit(**settings), ModelRef(model=str(folder)))
    return audit.claimed_epsilon, audit.delta, audit.claimed_unit


def test_the_claim_is_given_or_read_from_the_card(tmp_path):
    assert claim(tmp_path) == (None, 0.0, "record")
    (tmp_path / "card.json").write_text(json.dumps(CARD))
    assert claim(tmp_path) == (3.9, 1e-4, "user")
    assert claim(tmp_path, claimed_epsilon=2.0) == (2.0, 1e-4, "record")
    assert claim(tmp_path, claimed_epsilon=2.0, delta=1e-3, claimed_unit="user") == (2.0, 1e-3, "user")
    assert claim(tmp_path, delta=1e-3) == (3.9, 1e-3, "user")


@pytest.mark.parametrize("card", ['{"privacy": null}', '{"privacy": "none"}', "{}", '{"privacy": {"epsilon": "all"}}'])
def test_a_card_that_claims_nothing_changes_nothing(tmp_path, card):
    (tmp_path / "card.json").write_text(card)
    assert claim(tmp_path) == (None, 0.0, "record")


def test_an_audit_that_compares_with_no_claim_is_left_alone(tmp_path):
    (tmp_path / "card.json").write_text(json.dumps(CARD))
    audit = LeakageAudit()
    assert add_card_claim(audit, ModelRef(model=str(tmp_path))) is audit


def test_the_base_of_an_adapter_is_its_reference_where_none_is_given(tmp_path):
    (tmp_path / "adapter").mkdir()
    target = ModelRef(model=f"hf:gpt2+{tmp_path / 'adapter'}", window=32)
    verb = MembershipAudit.verb
    found = add_natural_reference({TARGET: target}, verb)
    assert found == {TARGET: target, "reference": ModelRef(model="hf:gpt2", window=32)}
    for role in ("reference", "reference-0"):
        given = {TARGET: target, role: ModelRef(model="other")}
        assert add_natural_reference(given, verb) == given
    assert add_natural_reference({TARGET: ModelRef(model="gpt2")}, verb) == {TARGET: ModelRef(model="gpt2")}
    assert add_natural_reference({TARGET: target}, LeakageAudit.verb) == {TARGET: target}
