"""Limits that no finding may pass, for continuous integration: `auc>0.6` or, for the sure part, `auc.lower>0.6`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from recollect.errors import PlanError
from recollect.results.result import Finding, Result
from recollect.settings import did_you_mean

_LIMIT = re.compile(
    r"\s*(?P<name>[a-z][a-z0-9_.\-]*?)(?:\.(?P<end>lower|upper))?\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>\S+)\s*"
)
_SIGNS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A bound on a finding, or on an end of its interval; a value for which the comparison holds has passed it."""

    name: str
    """The finding."""
    end: str | None = None
    """"lower" or "upper" for an end of the interval; None for the value."""
    sign: str
    bound: float

    @classmethod
    def parse(cls, text: str) -> Limit:
        """The limit that is written so.

        >>> str(Limit.parse("exposure_bits > 20")), Limit.parse("tpr_at_fpr_0.01.lower>=0.5").end
        ('exposure_bits>20', 'lower')

        Raises:
            PlanError: It is not written as a limit.
        """
        found = _LIMIT.fullmatch(text)
        bound = _number(found["bound"]) if found else None
        if found is None or bound is None:
            raise PlanError(
                f"{text!r} is no limit.",
                do="Write FINDING>NUMBER (or <, >=, <=), such as 'auc>0.6', or for an end of its interval "
                "'auc.lower>0.6'; in a shell, between quotes.",
            )
        return cls(name=found["name"], end=found["end"], sign=found["sign"], bound=bound)

    def __str__(self) -> str:
        short = f"{self.bound:g}"
        return f"{self.subject}{self.sign}{short if float(short) == self.bound else self.bound}"

    @property
    def subject(self) -> str:
        """What is compared."""
        return self.name if self.end is None else f"{self.name}.{self.end}"

    def passed(self, result: Result) -> str | None:
        """Which value passed the limit, in words; None if it was kept.

        Raises:
            PlanError: The result has no such finding, or the finding no interval: whether it was kept is not known.
        """
        value = self._value(self._finding(result))
        if not _SIGNS[self.sign](value, self.bound):
            return None
        return f"{self.subject} is {value:.6g}, which passes the limit {str(self)!r}."

    def _finding(self, result: Result) -> Finding:
        """The finding that is meant."""
        findings = {finding.name: finding for finding in result.findings}
        if self.name in findings:
            return findings[self.name]
        for skipped in result.skipped:
            if skipped.finding in (self.name, None):
                raise PlanError(f"The limit {str(self)!r} cannot be judged: {skipped.reason}")
        known = f"There are: {', '.join(findings)}." if findings else "There are none."
        raise PlanError(
            f"The limit {str(self)!r} cannot be judged: the {result.audit} audit has no finding {self.name!r}.",
            do=f"{did_you_mean(self.name, findings)}{known}",
        )

    def _value(self, finding: Finding) -> float:
        """What is compared with the bound; an open end lies infinitely far out."""
        if self.end is None:
            return finding.value
        if finding.interval is None:
            raise PlanError(
                f"The limit {str(self)!r} cannot be judged: {finding.name} has no interval.",
                do=f"Set the limit on its value: {str(replace(self, end=None))!r}.",
            )
        low, high = finding.interval
        if self.end == "lower":
            return -math.inf if low is None else low
        return math.inf if high is None else high


def passed_limits(limits: Iterable[Limit], result: Result) -> list[str]:
    """Which limits a result has passed, and by which value; empty if it kept them all.

    Raises:
        PlanError: Some limit cannot be judged; those that were passed are named as well.
    """
    passed, unjudged = list[str](), list[PlanError]()
    for limit in limits:
        try:
            passed += [said] if (said := limit.passed(result)) is not None else []
        except PlanError as error:
            unjudged.append(error)
    if unjudged:
        raise PlanError(" ".join([*passed, unjudged[0].found]), do=unjudged[0].do)
    return passed


def _number(text: str) -> float | None:
    """The finite number in a text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
