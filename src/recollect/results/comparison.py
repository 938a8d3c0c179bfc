"""Two runs side by side: what differs, by how much, and whether it is significant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from recollect.results.result import Finding, Outcome, Result

_INDEPENDENCE_NOTE = (
    "Intervals of differences take the two runs for independent. Where both audit the same people with the same "
    "controls they are wider than they need be."
)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One finding in both runs."""

    audit: str
    name: str
    unit: str
    before: float
    after: float
    interval: tuple[float, float] | None
    """Of after minus before."""
    why_no_interval: str = ""

    @property
    def value(self) -> float:
        """The compared difference: after minus before."""
        return self.after - self.before

    @property
    def differs(self) -> bool | None:
        """Whether the difference is significant; None where that is unknown."""
        return None if self.interval is None else not self.interval[0] <= 0 <= self.interval[1]


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """What both runs said of one audit."""

    audit: str
    before: str
    after: str
    outcomes: tuple[Outcome, Outcome]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two runs side by side."""

    verdicts: tuple[Verdicts, ...]
    differences: tuple[Difference, ...]
    missing: tuple[str, ...]
    """What only one of them has."""
    notes: tuple[str, ...]
    """What makes them differ besides the model."""


def compare_runs(before: Mapping[str, Result], after: Mapping[str, Result]) -> Comparison:
    """The results of two runs, by audit, side by side.

    Args:
        before: The results of the first run.
        after: Those of the second.
    """
    both = [audit for audit in before if audit in after]
    pairs = [(before[audit], after[audit]) for audit in both]
    return Comparison(
        verdicts=tuple(
            Verdicts(audit=a.audit, before=a.verdict_text, after=b.verdict_text, outcomes=(a.outcome, b.outcome))
            for a, b in pairs
        ),
        differences=tuple(each for a, b in pairs for each in _compare_findings(a, b)),
        missing=tuple(_describe_uncompared(before, after)),
        notes=(_INDEPENDENCE_NOTE, *(note for a, b in pairs for note in _describe_compared_settings(a, b))),
    )


def compute_difference_interval(before: Finding, after: Finding) -> tuple[float, float] | None:
    """The interval of a comparison's difference, for two independent estimates (Zou & Donner 2008, MOVER).

    None where one has no interval, an open one, or one of another confidence.
    """
    if before.interval is None or after.interval is None or before.confidence != after.confidence:
        return None
    (low, high), (lower, higher) = before.interval, after.interval
    if low is None or high is None or lower is None or higher is None:
        return None
    middle = after.value - before.value
    down = math.hypot(after.value - lower, high - before.value)
    up = math.hypot(higher - after.value, before.value - low)
    return middle - down, middle + up


def _compare_findings(before: Result, after: Result) -> Iterator[Difference]:
    """Compare every finding that both runs have."""
    later = {finding.name: finding for finding in after.findings}
    for finding in before.findings:
        other = later.get(finding.name)
        if other is None or other.unit != finding.unit:
            continue
        interval = compute_difference_interval(finding, other)
        why = finding.why_no_interval or other.why_no_interval or "The two intervals cannot be combined."
        yield Difference(
            audit=before.audit,
            name=finding.name,
            unit=finding.unit,
            before=finding.value,
            after=other.value,
            interval=interval,
            why_no_interval="" if interval is not None else why,
        )


def _describe_uncompared(before: Mapping[str, Result], after: Mapping[str, Result]) -> Iterator[str]:
    """Audits and findings that cannot be compared because only one run has them."""
    for one, other, which in ((before, after, "first"), (after, before, "second")):
        for audit, result in one.items():
            if audit not in other:
                yield f"Only the {which} run has the {audit} audit."
                continue
            names = {finding.name for finding in other[audit].findings}
            gone = [finding.name for finding in result.findings if finding.name not in names]
            if gone:
                yield f"{audit}: only the {which} run has {', '.join(gone)}."


def _describe_compared_settings(before: Result, after: Result) -> Iterator[str]:
    """What was not the same in the compared runs, besides the model."""
    changed = sorted(
        name
        for name in before.settings.keys() | after.settings.keys()
        if before.settings.get(name) != after.settings.get(name)
    )
    if changed:
        yield f"{before.audit}: the settings differ ({', '.join(changed)})."
    units = {finding.name: finding.unit for finding in after.findings}
    for finding in before.findings:
        if units.get(finding.name, finding.unit) != finding.unit:
            yield f"{before.audit}: {finding.name} is in {finding.unit} and in {units[finding.name]}: no difference."
    one, other = before.provenance, after.provenance
    if one is not None and other is not None and one.corpus != other.corpus:
        yield f"{before.audit}: the audited corpora differ, so the model is not all that does."
