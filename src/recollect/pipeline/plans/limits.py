"""Limits on findings, for continuous integration: `auc>0.6` or, for the confidence limit, `auc.lower>0.6`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from recollect.checks import suggest_name
from recollect.errors import PlanError
from recollect.results.result import Finding, LimitCheck, Result

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
        bound = _parse_limit_number(found["bound"]) if found else None
        if found is None or bound is None:
            raise PlanError(
                f"{text!r} is no limit.",
                do="Write FINDING>NUMBER (or <, >=, <=), such as 'auc>0.6', or for an end of its interval "
                "'auc.lower>0.6'; in a shell, between quotes.",
                code="not_a_limit",
            )
        return cls(name=found["name"], end=found["end"], sign=found["sign"], bound=bound)

    def __str__(self) -> str:
        short = f"{self.bound:g}"
        return f"{self.subject}{self.sign}{short if float(short) == self.bound else self.bound}"

    @property
    def subject(self) -> str:
        """What is compared."""
        return self.name if self.end is None else f"{self.name}.{self.end}"

    def check(self, result: Result) -> LimitCheck:
        """Whether the result keeps the limit; where it has no such finding, that is not known."""
        try:
            value = self._get_value(self._get_finding(result))
        except PlanError as error:
            return LimitCheck(limit=str(self), status="not_checked", reason=f"{error.found} {error.do}".strip())
        exceeded = _SIGNS[self.sign](value, self.bound)
        finite = value if math.isfinite(value) else None
        return LimitCheck(limit=str(self), status="exceeded" if exceeded else "kept", value=finite)

    def is_passed_by(self, figures: Mapping[str, float]) -> bool:
        """Whether a figure of this name is beyond the bound; one that is not there has not passed it."""
        return self.name in figures and bool(_SIGNS[self.sign](figures[self.name], self.bound))

    def _get_finding(self, result: Result) -> Finding:
        """The finding that is meant."""
        findings = {finding.name: finding for finding in result.findings}
        if self.name in findings:
            return findings[self.name]
        for skipped in result.skipped:
            if skipped.finding in (self.name, None):
                raise PlanError(skipped.reason, code=skipped.code)
        for withheld in result.withheld:
            if withheld.finding == self.name:
                raise PlanError(withheld.reason, code=withheld.code)
        known = f"There are: {', '.join(findings)}." if findings else "There are none."
        raise PlanError(
            f"The {result.audit} audit has no finding {self.name!r}.",
            do=f"{suggest_name(self.name, findings)}{known}",
            code="no_such_finding",
        )

    def _get_value(self, finding: Finding) -> float:
        """What is compared with the bound; an open end is infinitely far out."""
        if self.end is None:
            return finding.value
        if finding.interval is None:
            raise PlanError(
                f"The finding {finding.name} has no interval.",
                do=f"Set the limit on its value: {str(replace(self, end=None))!r}.",
                code="no_interval",
            )
        low, high = finding.interval
        if self.end == "lower":
            return -math.inf if low is None else low
        return math.inf if high is None else high


def check_limits(limits: Iterable[Limit], result: Result) -> tuple[LimitCheck, ...]:
    """Whether a result kept each limit; one that cannot be checked never counts as kept."""
    return tuple(limit.check(result) for limit in limits)


def _parse_limit_number(text: str) -> float | None:
    """The finite number in a text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
