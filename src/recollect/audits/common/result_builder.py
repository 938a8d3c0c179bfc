"""How every audit builds its result: findings and refusals are kept in order, and nothing vanishes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pyarrow as pa

from recollect.errors import NotEnoughData, RecollectError
from recollect.results.result import (
    Finding,
    Guard,
    Note,
    Outcome,
    Placebo,
    Power,
    Result,
    Skipped,
    Text,
    Withheld,
)
from recollect.stats.intervals import Estimate

NO_INTERVAL_OF_P: Final = "A p-value is itself a statement about the null distribution."


class AuditIdentity(Protocol):
    """What a builder must know of an audit."""

    @property
    def name(self) -> str:
        """The name that plans, verbs and results use."""

    @property
    def question(self) -> str:
        """The question it answers."""


@dataclass
class ResultBuilder:
    """Collects findings, tables, notes and skipped findings; `build` makes the result."""

    audit: AuditIdentity
    findings: list[Finding] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    withheld: list[Withheld] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    guard: Guard | None = None
    """Whether the audited and the controls are comparable (`guard.check_comparable`)."""
    placebo: Placebo | None = None
    """What the audit says of controls in the place of the audited (`placebo.run_placebo`)."""
    power: Power | None = None
    """What the design could have found (`power`)."""

    def try_estimate(self, name: str, make: Callable[[], Estimate], *, unit: str, reading: str) -> Finding | None:
        """The finding, kept; or None if the counts cannot support it, and the reason is kept."""
        try:
            finding = Finding.of(make(), name=name, unit=unit, reading=reading)
        except NotEnoughData as refusal:
            self.refuse(name, refusal)
            return None
        self.findings.append(finding)
        return finding

    def add_p_value(self, name: str, value: float, *, n: Mapping[str, int], method: str, reading: str) -> Finding:
        """A p-value, which has no interval of its own."""
        finding = Finding(
            name=name,
            value=value,
            why_no_interval=NO_INTERVAL_OF_P,
            unit="probability",
            n=dict(n),
            method=method,
            reading=reading,
        )
        self.findings.append(finding)
        return finding

    def refuse(self, name: str, refusal: RecollectError) -> None:
        """Keep why a finding is missing."""
        self.skip(name, code=refusal.code, reason=f"{refusal.found} {refusal.do}".strip())

    def skip(self, name: str | None, *, code: str, reason: str) -> None:
        """Keep why a finding, or the whole audit, was not done."""
        self.skipped.append(Skipped(audit=self.audit.name, finding=name, code=code, reason=reason))

    def withhold(self, *names: str, code: str, reason: str) -> None:
        """Take back findings that would mislead: a limit on one of them cannot be judged, and the run says so.

        A finding of that name that was already kept is removed, so that an audit may compute first and withhold last.

        Args:
            names: The findings.
            code: Why, such as "not_comparable".
            reason: The same in a sentence.
        """
        known = {each.finding for each in self.withheld}
        self.findings = [finding for finding in self.findings if finding.name not in names]
        self.withheld += [Withheld(finding=name, code=code, reason=reason) for name in names if name not in known]

    def note(self, code: str, text: Text) -> None:
        """Something that a reader ought to know."""
        self.notes.append(Note(code=code, text=text))

    def build(
        self,
        *,
        verdict: Text,
        outcome: Outcome,
        code: str | None = None,
        untested: Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> Result:
        """The result.

        Args:
            verdict: One sentence that a lawyer can read.
            outcome: The answer to the audit's question.
            code: Why it is inconclusive; given then, and only then.
            untested: What the audit does not test.
            settings: All settings, as a result writes them down.
        """
        return Result(
            audit=self.audit.name,
            question=self.audit.question,
            verdict=verdict,
            outcome=outcome,
            outcome_code=code,
            findings=tuple(self.findings),
            withheld=tuple(self.withheld),
            guard=self.guard,
            placebo=self.placebo,
            power=self.power,
            skipped=tuple(self.skipped),
            notes=tuple(self.notes),
            untested=tuple(untested),
            dropped={reason: count for reason, count in self.dropped.items() if count},
            settings=dict(settings or {}),
        ).with_tables(**self.tables)


def build_refusal(
    audit: AuditIdentity,
    refusal: RecollectError,
    *,
    finding: str | None = None,
    untested: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> Result:
    """The result of an audit that has too little to decide by: inconclusive, with the reason.

    Args:
        audit: The audit.
        refusal: What was missing.
        finding: The finding that is missing; None if the whole audit was skipped.
        untested: What the audit does not test.
        settings: All settings, as a result writes them down.
    """
    builder = ResultBuilder(audit)
    reason = f"{refusal.found} {refusal.do}".strip()
    builder.skip(finding, code=refusal.code, reason=reason)
    verdict = f"Cannot be determined from this data. {refusal.found}"
    return builder.build(
        verdict=verdict, outcome="inconclusive", code=refusal.code, untested=untested, settings=settings
    )
