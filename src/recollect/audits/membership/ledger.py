"""What was found and what could not be: a refusal by the statistics is kept with its reason, never lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from recollect.errors import NotEnoughData
from recollect.results.result import Finding, Skipped
from recollect.stats.intervals import Estimate


@dataclass
class Ledger:
    """Findings and refusals in the order in which they were tried."""

    audit: str
    findings: list[Finding] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def tried(self, name: str, make: Callable[[], Estimate], *, unit: str, reading: str) -> Finding | None:
        """The finding, kept; or None if the counts cannot support it, and the reason is kept."""
        try:
            finding = Finding.of(make(), name=name, unit=unit, reading=reading)
        except NotEnoughData as refusal:
            self.refused(name, refusal)
            return None
        self.findings.append(finding)
        return finding

    def refused(self, name: str, refusal: NotEnoughData) -> None:
        """Keep why a finding is missing."""
        self.skipped.append(Skipped(audit=self.audit, finding=name, reason=f"{refusal.found} {refusal.do}".strip()))
