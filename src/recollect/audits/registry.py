"""The audits by name: a literal table, and plug-ins."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recollect.audits.verb import Verb
from recollect.errors import PlanError
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
    reserved=frozenset(
        {
            *("demo", "run", "check", "plant", "sanitise", "train", "score", "extract"),
            *("report", "compare", "evaluate", "list", "doctor", "verify", "clean", "forget"),
            *("audit", "plan", "read"),  # what a session offers besides
        }
    ),
    required=("name", "question", "paper", "needs", "run"),
    own_hint="One of your own has to be installed as a plug-in, or registered in the same program "
    "(recollect.register_audit).",
)
"""Every audit, by the name that plans and results use."""
VERBS = {"extract": "extraction"}
"""Built-in audits whose verb differs from their name; a test compares this table with the declarations."""
VIEWS = {
    "exposure": "recollect.audits.exposure.view:PRESENTATION",
    "extraction": "recollect.audits.exposure.view:EXTRACTION_PRESENTATION",
    "leakage": "recollect.audits.leakage.view:PRESENTATION",
    "membership": "recollect.audits.membership.view:PRESENTATION",
    "provenance": "recollect.audits.provenance.view:PRESENTATION",
    "removal": "recollect.audits.removal.view:PRESENTATION",
}
"""How built-in audits are shown, for whoever needs nothing else of them; a test compares it with the declarations.
Beside each PRESENTATION is the VERB of the same audit."""


def list_audits_by_verb() -> dict[str, str]:
    """The audit that each verb runs, plug-ins included; a plug-in's verb has the name of its entry point.

    >>> list_audits_by_verb()["extract"]
    'extraction'
    """
    renamed = {audit: verb for verb, audit in VERBS.items()}
    return {renamed.get(name, name): name for name in AUDITS.names}


def find_verb(audit: str) -> Verb:
    """How users call a registered audit.

    Raises:
        PlanError: There is no such audit; or a plug-in offers it under another name than its own, or without a verb.
    """
    if audit in VIEWS:  # without what the audit computes with
        module, _, name = VIEWS[audit].partition(":")
        declared: Verb = getattr(import_module(module), name.replace("PRESENTATION", "VERB"))
        return declared
    kind = AUDITS.load(audit)
    if kind.name != audit:
        raise PlanError(
            f"A plug-in offers the audit {kind.name!r} under the name {audit!r}.",
            do="The entry point has to have the name of the audit.",
            code="plugin_misnamed",
        )
    verb = getattr(kind, "verb", None)
    if not isinstance(verb, Verb):
        raise PlanError(
            f"The audit {audit!r} declares no verb.",
            do="Declare `verb: ClassVar[Verb] = Verb(...)` on its class; see docs/how-to/add-an-audit.md.",
            code="audit_without_verb",
        )
    return verb


def build_audit(name: str, **settings: Any) -> Audit:
    """The registered audit of that name with these settings.

    Raises:
        PlanError: There is no such audit or setting; the nearest is suggested.
    """
    made: Audit = AUDITS.make(name, settings)
    return made
