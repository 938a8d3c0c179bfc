"""Limits on findings: what passes them is said by value; what cannot be judged is never taken for kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from recollect.errors import PlanError
from recollect.pipeline.limits import Limit, passed_limits
from recollect.results.result import Finding, Result, Skipped


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
)


def passed(*limits):
    return passed_limits([Limit.parse(limit) for limit in limits], RESULT)


@pytest.mark.parametrize(
    "limit",
    ["auc>0.6", "auc >= 0.7", " auc.lower < 0.6", "auc.upper>=0.9", "tpr_at_fpr_0.01.upper>.3", "epsilon.upper>1e9"],
)
def test_a_value_that_passes_a_limit_is_said(limit):
    (said,) = passed(limit)
    assert str(Limit.parse(limit)) in said


def test_the_message_gives_finding_value_and_limit():
    assert passed("exposure_bits>20") == ["exposure_bits is 21.5, which passes the limit 'exposure_bits>20'."]


@pytest.mark.parametrize("limit", ["auc>0.7", "auc<=0.69", "auc.lower>0.5", "tpr_at_fpr_0.01.lower>0", "epsilon<-3"])
def test_a_limit_that_is_kept_is_silent(limit):
    assert passed(limit) == []


def test_several_limits_are_judged_each():
    assert len(passed("auc>0.6", "auc>0.99", "epsilon>2.5")) == 2


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (
            "acu>0.6",
            r"no finding 'acu'.\n  Did you mean 'auc'\? There are: auc, tpr_at_fpr_0.01, exposure_bits, epsilon",
        ),
        ("tpr_at_fpr_0.001>0.1", "cannot be judged: It needs 1,000 non-members"),
        ("exposure_bits.lower>20", "exposure_bits has no interval"),
    ],
)
def test_what_cannot_be_judged_is_an_error_and_not_kept(limit, said):
    with pytest.raises(PlanError, match=said):
        passed(limit)


def test_a_limit_that_cannot_be_judged_does_not_hide_one_that_was_passed():
    with pytest.raises(PlanError, match=r"auc is 0.7, which passes the limit 'auc>0.6'. The limit 'acu>1' cannot"):
        passed("acu>1", "auc>0.6")


@pytest.mark.parametrize(
    "text", ["auc", "auc>", ">0.6", "auc=0.6", "auc>high", "auc>nan", "auc>inf", "AUC>0.5", "a>1>2"]
)
def test_what_is_no_limit_is_refused(text):
    with pytest.raises(PlanError, match="is no limit"):
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
