"""The outcome after all checks, and what a builder withholds."""

import pytest

from recollect.audits.common.outcomes import Conclusion, conclude
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.membership.audit import MembershipAudit
from recollect.pipeline.plans.limits import Limit, check_limits
from recollect.results.result import Guard, Placebo, Power

UNLIKE, FAILED = Guard(comparable=False), Placebo(status="failed", reason="Too many.")


@pytest.mark.parametrize(
    ("outcome", "checks", "code"),
    [
        ("found", {}, None),
        ("not_found", {}, None),
        ("found", {"guard": UNLIKE}, "not_comparable"),
        ("not_found", {"guard": UNLIKE, "attainable": False}, "not_comparable"),
        ("not_found", {"placebo": FAILED}, "placebo_failed"),
        ("found", {"placebo": Placebo(status="not_run", reason="Too few.")}, None),
        ("found", {"explained": True}, "explained_by_texts"),
        ("not_found", {"explained": True}, None),
        ("not_found", {"attainable": False}, "no_power"),
        ("found", {"attainable": False}, None),
        ("inconclusive", {"code": "too_few_records", "guard": UNLIKE}, "too_few_records"),
    ],
)
def test_the_first_check_that_fails_makes_the_outcome_inconclusive(outcome, checks, code):
    expected = Conclusion(outcome=outcome) if code is None else Conclusion(outcome="inconclusive", code=code)
    assert conclude(outcome, **checks) == expected


def test_a_withheld_finding_vanishes_and_a_limit_on_it_cannot_be_checked():
    builder = ResultBuilder(MembershipAudit())
    builder.add_p_value("training_p", 0.001, n={"users": 3}, method="made up", reading="Made up.")
    builder.add_p_value("membership_p", 0.001, n={"users": 3}, method="made up", reading="Made up.")
    for _ in range(2):
        builder.withhold("training_p", "identified", code="not_comparable", reason="They differ.")
    builder.guard, builder.placebo, builder.power = UNLIKE, FAILED, Power(smallest_p=0.2)
    result = builder.build(verdict="Cannot be determined.", outcome="inconclusive", code="not_comparable")
    assert [each.name for each in result.findings] == ["membership_p"]
    assert [(each.finding, each.code) for each in result.withheld] == [
        ("training_p", "not_comparable"),
        ("identified", "not_comparable"),
    ]
    assert (result.guard, result.placebo, result.power) == (UNLIKE, FAILED, Power(smallest_p=0.2))
    (checked,) = check_limits([Limit.parse("training_p<0.05")], result)
    assert checked.status == "not_checked"
    assert "They differ." in str(checked.reason)
