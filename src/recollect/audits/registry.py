"""The audits by name: a table one can read, and the plug-ins of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.signals.registry import Registry

if TYPE_CHECKING:
    from recollect.audits.audit import Audit

AUDITS = Registry(
    "audit",
    {
        "exposure": "recollect.audits.exposure.audit:ExposureAudit",
        "extraction": "recollect.audits.exposure.extraction:ExtractionAudit",
        "leakage": "recollect.audits.leakage.audit:LeakageAudit",
        "membership": "recollect.audits.membership.audit:MembershipAudit",
        "provenance": "recollect.audits.provenance.audit:ProvenanceAudit",
        "removal": "recollect.audits.removal.audit:RemovalAudit",
    },
)
"""Every audit, by the name that plans and verbs use."""


def audit_named(name: str, **settings: Any) -> Audit:
    """The audit of that name with these settings.

    Raises:
        PlanError: There is no such audit or setting; the nearest is suggested.
    """
    made: Audit = AUDITS.make(name, settings)
    return made
