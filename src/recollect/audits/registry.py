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
"""Every audit, by the name that plans and results use."""
VERBS = {"extract": "extraction"}
"""The verbs of our own audits that are called otherwise than the audit; a test holds them against the declarations."""


def audits_by_verb() -> dict[str, str]:
    """The audit that each verb runs, plug-ins included; a plug-in's verb has the name of its entry point.

    >>> audits_by_verb()["extract"]
    'extraction'
    """
    renamed = {audit: verb for verb, audit in VERBS.items()}
    return {renamed.get(name, name): name for name in AUDITS.names}


def audit_named(name: str, **settings: Any) -> Audit:
    """The audit of that name with these settings.

    Raises:
        PlanError: There is no such audit or setting; the nearest is suggested.
    """
    made: Audit = AUDITS.make(name, settings)
    return made
