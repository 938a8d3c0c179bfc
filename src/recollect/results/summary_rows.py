"""A result as plain rows of words, for tables in terminals, reports and pull requests."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.corpora.faults import describe_reason
from recollect.results.result import Finding, Result


@dataclass(frozen=True, kw_only=True)
class Row:
    """One finding in words."""

    name: str
    value: str
    interval: str
    n: str
    reading: str


def build_summary_rows(result: Result) -> list[Row]:
    """One row per finding, in the order of the result."""
    return [_build_finding_row(finding) for finding in result.findings]


@dataclass(frozen=True, kw_only=True)
class WithheldTogether:
    """Findings that are withheld for one reason."""

    names: str
    code: str
    reason: str


def group_withheld(result: Result) -> list[WithheldTogether]:
    """What is withheld, findings with the same reason together, so that it is read once."""
    together = dict[tuple[str, str], list[str]]()
    for each in result.withheld:
        together.setdefault((each.code, each.reason), []).append(each.finding)
    return [
        WithheldTogether(names=", ".join(names), code=code, reason=reason) for (code, reason), names in together.items()
    ]


def _build_finding_row(finding: Finding) -> Row:
    """A finding as a row of words."""
    return Row(
        name=finding.name,
        value=f"{format_number(finding.value)} {finding.unit}",
        interval=_format_finding_interval(finding),
        n=", ".join(f"{count:,} {describe_count(name)}" for name, count in finding.n.items()),
        reading=finding.reading,
    )


def _format_finding_interval(finding: Finding) -> str:
    """The interval of a finding in words, or why there is none."""
    if finding.interval is None or finding.confidence is None:
        return f"none: {finding.why_no_interval}"
    low, high = finding.interval
    sure = f"({100 * finding.confidence:g} %)"
    if low is None:
        return f"at most {format_number(high or 0)} {sure}"
    return (
        f"at least {format_number(low)} {sure}"
        if high is None
        else f"{format_number(low)} to {format_number(high)} {sure}"
    )


def describe_count(code: str) -> str:
    """What a count in a row is of, in words: a role before its reason.

    >>> describe_count("audited.empty_text"), describe_count("control_users")
    ('audited: empty text', 'control users')
    """
    role, _, reason = code.rpartition(".")
    words = describe_reason(reason).replace("_", " ")
    return f"{role}: {words}" if role else words


def format_number(value: float) -> str:
    """Three significant digits, and no power of ten where people would not write one.

    >>> [format_number(v) for v in (0.98765, 999.7, 12345.6, 3.0, 0.00001234, 0.0, 3e12)]
    ['0.988', '1,000', '12,346', '3', '1.23e-05', '0', '3e+12']
    """
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e9 else f"{value:.3g}"
