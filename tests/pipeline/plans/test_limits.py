"""Limits on findings: what exceeds them is told by value; what cannot be judged is never taken for kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from recollect.errors import PlanError
from recollect.pipeline.plans.limits import Limit, check_limits
from recollect.results.result import Finding, LimitCheck, Result, Skipped, Withheld
from recollect.testing.refusals import refused


def finding(name, value, interval=(0.5, 0.9)):
    sure = {"interval": interval, "confidence": 0.95} if interval else {"why_no_interval": "too few"}
    return Finding(name=name, value=value, unit="share", n={"users": 3}, method="m", reading="r", **sure)


RESULT = Result(
    audit="toy",
    question="?",
    verdict="!",
    outcome="found",
    findings=(
        finding("auc", 0.7),
        finding("tpr_at_fpr_0.01", 0.2, (None, 0.4)),
        finding("exposure_bits", 21.5, None),
        finding("epsilon", 3.0, (1.0, None)),
    ),
    skipped=(Skipped(audit="toy", finding="tpr_at_fpr_0.001", code="too_few", reason="It needs 1,000 non-members."),),
    withheld=(Withheld(finding="lift", code="misleading", reason="It would mislead."),),
)


def checked(*limits):
    return check_limits([Limit.parse(limit) for limit in limits], RESULT)


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("auc>0.6", 0.7),
        ("auc >= 0.7", 0.7),
        (" auc.lower < 0.6", 0.5),
        ("auc.upper>=0.9", 0.9),
        ("tpr_at_fpr_0.01.upper>.3", 0.4),
        ("epsilon.upper>1e9", None),  # an open end is infinitely far out
        ("exposure_bits>20", 21.5),
    ],
)
def test_a_value_that_exceeds_a_limit_is_reported_with_the_limit(limit, value):
    (check,) = checked(limit)
    assert check == LimitCheck(limit=str(Limit.parse(limit)), status="exceeded", value=value)


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("auc>0.7", 0.7),
        ("auc<=0.69", 0.7),
        ("auc.lower>0.5", 0.5),
        ("tpr_at_fpr_0.01.lower>0", None),
        ("epsilon<-3", 3),
    ],
)
def test_a_limit_that_is_kept_is_reported_too(limit, value):
    (check,) = checked(limit)
    assert check == LimitCheck(limit=str(Limit.parse(limit)), status="kept", value=value)


def test_several_limits_are_checked_each():
    assert [check.status for check in checked("auc>0.6", "auc>0.99", "epsilon>2.5")] == ["exceeded", "kept", "exceeded"]


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ("acu>0.6", ["'auc'", "tpr_at_fpr_0.01, exposure_bits, epsilon"]),
        ("tpr_at_fpr_0.001>0.1", ["It needs 1,000 non-members"]),
        ("lift>2", ["It would mislead."]),
        ("exposure_bits.lower>20", ["exposure_bits", "'exposure_bits>20'"]),
    ],
)
def test_what_cannot_be_checked_is_not_kept_and_has_a_reason(limit, why):
    (check,) = checked(limit)
    assert (check.status, check.value) == ("not_checked", None)
    assert all(each in check.reason for each in why)


def test_a_limit_that_cannot_be_checked_does_not_hide_one_that_was_exceeded():
    assert [check.status for check in checked("acu>1", "auc>0.6")] == ["not_checked", "exceeded"]


@pytest.mark.parametrize(
    "text", ["auc", "auc>", ">0.6", "auc=0.6", "auc>high", "auc>nan", "auc>inf", "AUC>0.5", "a>1>2"]
)
def test_what_is_no_limit_is_refused(text):
    with refused("not_a_limit", PlanError):
        Limit.parse(text)


@settings(deadline=None, max_examples=50)
@given(
    name=some.from_regex(r"[a-z][a-z0-9_\-]{0,8}", fullmatch=True),
    end=some.sampled_from([None, "lower", "upper"]),
    sign=some.sampled_from([">", ">=", "<", "<="]),
    bound=some.floats(allow_nan=False, allow_infinity=False),
)
def test_a_limit_reads_as_it_is_written(name, end, sign, bound):
    limit = Limit(name=name, end=end, sign=sign, bound=bound)
    assert Limit.parse(str(limit)) == limit
