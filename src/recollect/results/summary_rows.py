"""A result as plain rows of words, for tables in terminals, reports and pull requests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from recollect.corpora.readers.faults import describe_reason
from recollect.results.result import Finding, Result


@dataclass(frozen=True, kw_only=True)
class Row:
    """One finding in words."""

    name: str
    title: str
    """Its name as people write it."""
    value: str
    interval: str
    """The interval with its confidence level, or why there is none."""
    both: str
    """Value and interval together, for where there is little room."""
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
    """Summary rows of what is withheld, findings with the same reason together, so that it is read once."""
    together = dict[tuple[str, str], list[str]]()
    for each in result.withheld:
        together.setdefault((each.code, each.reason), []).append(each.finding)
    return [
        WithheldTogether(names=", ".join(names), code=code, reason=reason) for (code, reason), names in together.items()
    ]


def _build_finding_row(finding: Finding) -> Row:
    """The summary row of a finding."""
    value = format_value(finding.value, finding.unit)
    return Row(
        name=finding.name,
        title=title_name(finding.name),
        value=value,
        interval=_format_finding_interval(finding),
        both=f"{value} ({_format_span(finding)})" if finding.interval is not None else value,
        n=", ".join(f"{count:,} {describe_count(name)}" for name, count in finding.n.items()),
        reading=finding.reading,
    )


def _format_finding_interval(finding: Finding) -> str:
    """The interval of a finding in a summary row, or why there is none."""
    if finding.interval is None or finding.confidence is None:
        return f"none: {finding.why_no_interval}"
    return f"{_format_span(finding)} ({100 * finding.confidence:g} % confidence)"


def _format_span(finding: Finding) -> str:
    """The span of an interval in a summary row."""
    low, high = finding.interval or (None, None)
    percent = " %" if finding.unit == "share" else ""  # other units stand with the value
    if low is None:
        return f"at most {format_bare(high or 0, finding.unit)}{percent}"
    if high is None:
        return f"at least {format_bare(low, finding.unit)}{percent}"
    return format_span(low, high, finding.unit)


def format_span(low: float, high: float, unit: str) -> str:
    """Two ends of a range in a summary row, to the same precision.

    >>> format_span(0.00611, 0.17, "share"), format_span(0.34, 0.62, "share"), format_span(-1.5, 2.0, "nats")
    ('0.6–17 %', '34–62 %', '-1.5 to 2')
    """
    first, last = format_bare(low, unit), format_bare(high, unit)
    if unit == "share" and 0 < low < 0.01 <= high:
        first = f"{100 * low:.1g}"  # beside whole percents
    return f"{first}{' to ' if '-' in first + last else '–'}{last}{' %' if unit == 'share' else ''}"


ABBREVIATIONS: Final = {
    "auc": "AUC",
    "tpr": "TPR",
    "fpr": "FPR",
    "p": "p-value",
    "roc": "ROC",
    "ks": "KS",
    "ema": "EMA",
}
"""Words of names that are not written in title case."""
_SMALL_WORDS: Final = frozenset({"at", "of", "in", "from", "to", "the", "and", "against", "by"})


def title_name(name: str) -> str:
    """A name of a finding or an audit for a summary row, in title case; the error rate in it as a percentage.

    >>> [title_name(each) for each in ("tpr_at_fpr_0.01", "leakage_epsilon_p99", "p_still_there", "users_found")]
    ['TPR at 1 % FPR', 'Leakage Epsilon P99', 'p-value Still There', 'Users Found']
    """
    words = re.sub(r"fpr_(0\.[0-9]+)", lambda rate: f"{100 * float(rate[1]):g} %_fpr", name).split("_")
    return " ".join(
        ABBREVIATIONS.get(word, word if i and word in _SMALL_WORDS else word[:1].upper() + word[1:])
        for i, word in enumerate(words)
    )


def format_value(value: float, unit: str) -> str:
    """A number of a summary row with its unit: shares in percent, probabilities with two decimals.

    >>> format_value(0.4815, "share"), format_value(1.0, "probability"), format_value(2e-9, "probability")
    ('48 %', '1.00', '< 0.0001')
    >>> format_value(39.4, "nats")
    '39.4 nats'
    """
    bare = format_bare(value, unit)
    return {"share": f"{bare} %", "probability": bare}.get(unit, f"{bare} {unit}")


def state_p(p: float) -> str:
    """A p-value as a summary row or a sentence has it.

    >>> state_p(2.3e-9), state_p(0.0005), state_p(0.222)
    ('p < 0.0001', 'p = 0.0005', 'p = 0.22')
    """
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def format_bare(value: float, unit: str) -> str:
    """A number of a summary row without its unit.

    >>> [format_bare(*each) for each in ((0.004, "share"), (0.0005, "probability"), (0.9999, "share"), (0.0, "share"))]
    ['0.4', '0.0005', '99.99', '0']
    """
    if unit == "share":
        percent = 100 * value
        is_round = 1 <= percent <= 99 or percent in (0, 100)
        return f"{percent:.0f}" if is_round else f"{percent:.3g}" if percent < 1 else f"{percent:.4g}"
    if unit == "probability":
        if 0 < value < 1e-4:
            return "< 0.0001"
        return f"{value:.2f}" if value >= 0.01 or value <= 0 else f"{value:.1g}"
    return format_number(value)


def describe_count(code: str) -> str:
    """What a count in a row is of, in words: a role before its reason.

    >>> describe_count("audited.empty_text"), describe_count("control_users")
    ('audited: empty text', 'control users')
    """
    role, _, reason = code.rpartition(".")
    words = describe_reason(reason).replace("_", " ")
    return f"{role}: {words}" if role else words


def format_number(value: float) -> str:
    """A number of a summary row: three significant digits, and no power of ten where people would not write one.

    >>> [format_number(v) for v in (0.98765, 999.7, 12345.6, 3.0, 0.00001234, 0.0, 3e12)]
    ['0.988', '1,000', '12,346', '3', '1.23e-05', '0', '3e+12']
    """
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e9 else f"{value:.3g}"
