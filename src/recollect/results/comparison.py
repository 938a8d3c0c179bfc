"""Two runs side by side: what differs, by how much, and whether it is significant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from recollect.results.result import Finding, Outcome, Provenance, Result

_INDEPENDENCE_NOTE = (
    "Intervals of differences take the two runs for independent. Where both audit the same people with the same "
    "controls they are wider than they need be."
)
_CORRECTION_NOTE = (
    "What differs significantly is corrected for the number of findings that are compared (Holm); each interval holds "
    "for its finding alone."
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
    """Of after minus before, for this finding alone."""
    why_no_interval: str = ""
    p_corrected: float | None = None
    """The p-value of "no difference", corrected for all findings that are compared (Holm); None without an interval."""
    alpha: float = 0.05
    """The significance level: what the confidence level of the interval leaves."""

    @property
    def value(self) -> float:
        """The compared difference: after minus before."""
        return self.after - self.before

    @property
    def differs(self) -> bool | None:
        """Whether the difference is significant among all that are compared; None where that is unknown."""
        return None if self.p_corrected is None else self.p_corrected < self.alpha


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
        differences=_correct_differences([each for a, b in pairs for each in _compare_findings(a, b)]),
        missing=tuple(_describe_uncompared(before, after)),
        notes=(
            _INDEPENDENCE_NOTE,
            _CORRECTION_NOTE,
            *(note for a, b in pairs for note in (*_describe_inconclusive(a, b), *_describe_compared_settings(a, b))),
        ),
    )


def compute_difference_interval(
    before: Finding, after: Finding, *, opposed: bool = False
) -> tuple[float, float] | None:
    """The interval of a comparison's difference, for two independent estimates (Zou & Donner 2008, MOVER).

    None where one has no interval, an open one, or one of another confidence.

    Args:
        before: The finding of the first run.
        after: That of the second.
        opposed: Whether what raises one estimate may lower the other, as where people change sides: then errors add up
            as they are, not in squares, which holds however the two depend on each other.
    """
    if before.interval is None or after.interval is None or before.confidence != after.confidence:
        return None
    (low, high), (lower, higher) = before.interval, after.interval
    if low is None or high is None or lower is None or higher is None:
        return None
    middle = after.value - before.value
    down = abs(after.value - lower), abs(high - before.value)
    up = abs(higher - after.value), abs(before.value - low)
    if opposed:
        return middle - sum(down), middle + sum(up)
    return middle - math.hypot(*down), middle + math.hypot(*up)


def _correct_differences(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """The differences of a comparison with p-values, corrected for how many can be tested at all."""
    from recollect.stats.significance import holm

    tested = [each for each in differences if each.interval is not None]
    p = dict(zip(map(id, tested), holm([_compute_difference_p(each) for each in tested]).tolist(), strict=True))
    return tuple(replace(each, p_corrected=p.get(id(each))) for each in differences)


def _compute_difference_p(each: Difference) -> float:
    """The p-value of a difference: how far its interval would have to be stretched to reach 0, as normal errors do."""
    import scipy

    assert each.interval is not None  # noqa: S101 - asked for only then
    low, high = each.interval
    reach = each.value - low if each.value > 0 else high - each.value
    if each.value == 0:
        return 1.0
    if reach <= 0:
        return 0.0
    return float(2 * scipy.special.ndtr(scipy.special.ndtri(each.alpha / 2) * abs(each.value) / reach))


def _are_opposed(before: Result, after: Result) -> bool:
    """Whether people of one run of a comparison may be on the other side in the other run."""
    one, other = before.provenance, after.provenance
    if one is None or other is None:
        return False
    ours, theirs = _list_data(one), _list_data(other)
    moved = any(digest in theirs.values() and theirs.get(role) != digest for role, digest in ours.items())
    return moved or (one.corpus == other.corpus and ours.get("members") != theirs.get("members"))


def _list_data(provenance: Provenance) -> dict[str, str]:
    """The digests of the data of a compared run, by role."""
    named = {role: digest for role, digest in provenance.digests.items() if role not in provenance.models}
    return named if provenance.corpus is None else {"corpus": provenance.corpus, **named}


def _describe_inconclusive(before: Result, after: Result) -> Iterator[str]:
    """Which of two compared runs could decide nothing, so that a change of outcome need not come from the model."""
    for which, result in (("first", before), ("second", after)):
        if result.outcome == "inconclusive":
            code = result.outcome_code
            yield f"{result.audit}: the {which} run is inconclusive ({code}): the outcomes cannot be compared."


def _compare_findings(before: Result, after: Result) -> Iterator[Difference]:
    """Compare every finding that both runs have."""
    later, opposed = {finding.name: finding for finding in after.findings}, _are_opposed(before, after)
    for finding in before.findings:
        other = later.get(finding.name)
        if other is None or other.unit != finding.unit:
            continue
        interval = compute_difference_interval(finding, other, opposed=opposed)
        why = finding.why_no_interval or other.why_no_interval or "The two intervals cannot be combined."
        yield Difference(
            audit=before.audit,
            name=finding.name,
            unit=finding.unit,
            before=finding.value,
            after=other.value,
            interval=interval,
            why_no_interval="" if interval is not None else why,
            alpha=0.05 if finding.confidence is None else 1 - finding.confidence,
        )


def _describe_uncompared(before: Mapping[str, Result], after: Mapping[str, Result]) -> Iterator[str]:
    """Audits and findings that cannot be compared because only one run has them."""
    for one, other, which in ((before, after, "first"), (after, before, "second")):
        for audit, result in one.items():
            if audit not in other:
                yield f"Only the {which} run has the {audit} audit."
                continue
            names = {finding.name for finding in other[audit].findings}
            withheld = {each.finding: each.code for each in other[audit].withheld}
            gone = [finding.name for finding in result.findings if finding.name not in names]
            if gone:
                listed = (
                    f"{name} (in the other it is withheld: {withheld[name]})" if name in withheld else name
                    for name in gone
                )
                yield f"{audit}: only the {which} run has {', '.join(listed)}."


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
    if before.provenance is not None and after.provenance is not None:
        yield from _describe_compared_data(before.audit, before.provenance, after.provenance)
    if _are_opposed(before, after):
        yield (
            f"{before.audit}: people may be on different sides in the two runs, so that what raises one number lowers "
            "the other: intervals of differences hold for any dependence."
        )


def _describe_compared_data(audit: str, one: Provenance, other: Provenance) -> Iterator[str]:
    """What compared runs were made of that was not the same."""
    if one.corpus != other.corpus:
        yield f"{audit}: the audited corpora differ, so that the model is not all that differs."
    changed = sorted(
        role for role in one.digests.keys() | other.digests.keys() if one.digests.get(role) != other.digests.get(role)
    )
    if changed:
        yield f"{audit}: these data differ as well: {', '.join(changed)}."
    if one.recollect != other.recollect:
        yield f"{audit}: the runs are of versions {one.recollect} and {other.recollect}, whose numbers may differ."
    if one.model is not None and one.model == other.model:
        yield f"{audit}: both runs audit the same model."
