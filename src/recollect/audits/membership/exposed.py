"""The findings about which records are exposed, where the truth is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.audits.common.builder import ResultBuilder
from recollect.audits.membership.deciding import Decisions
from recollect.audits.membership.standing import Standing
from recollect.audits.membership.susceptible import EMBEDDER, Susceptibility, susceptibility
from recollect.errors import NotEnoughData, PlanError
from recollect.models.model import Embedding
from recollect.results.result import Finding
from recollect.signals.evidence import AUDITED, Evidence

if TYPE_CHECKING:
    from recollect.audits.membership.audit import MembershipAudit


def add_exposed(
    builder: ResultBuilder, audit: MembershipAudit, evidence: Evidence, found: Standing, decided: Decisions
) -> Susceptibility | None:
    """Which records are exposed, where the truth is known and records are judged; None where that cannot be told."""
    if found.trained is None or audit.by != "record" or not decided.flagged:
        return None
    records = {record.id: record for record in evidence.corpora[AUDITED]}
    if any(record.array is not None for record in records.values()):
        return None
    rate = max(decided.flagged)
    flagged = dict(zip(found.candidates.records, decided.flagged[rate].tolist(), strict=True))
    try:
        looks = susceptibility(
            [records[name] for name in found.members.records],
            [flagged[name] for name in found.members.records],
            [records[name] for name in found.others.records],
            embedder=embedder_of(evidence),
            seed=evidence.seed,
            confidence=audit.confidence,
        )
    except NotEnoughData as refusal:
        builder.refuse("exposed_precision", refusal)
        return None
    reading = f"by a logistic regression from {looks.features}, on users it was not fitted to."
    for name, said, share in (
        ("exposed_precision", "Of the records that are predicted to be found out, the share that is,", looks.precision),
        ("exposed_recall", "Of the records that are found out, the share that was predicted,", looks.recall),
    ):
        builder.findings.append(Finding.of(share, name=name, unit="share", reading=f"{said} {reading}"))
    return looks


def embedder_of(evidence: Evidence) -> Embedding | None:
    """The general model whose embedding is a feature, if one is given.

    Raises:
        PlanError: It is of a kind that embeds nothing.
    """
    model: object = evidence.models.get(EMBEDDER)
    if model is None or isinstance(model, Embedding):
        return model
    raise PlanError(
        f"The embedder is a {evidence.models[EMBEDDER].kind} model, which has no symbol that stands for a whole text.",
        do="Give a masked model that is neither the target nor a reference, such as a general BERT.",
    )
