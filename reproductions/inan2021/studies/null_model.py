"""Models that never saw the audited users: ε_l is far above zero there too, the excess is not, and nobody is flagged.

Each model is audited on a group that no model was trained on, beside the controls, of whom that is true as well.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from common.outcomes import Figure, Outcome
from laboratory import (
    OTHERS,
    PRIVATE,
    PUBLIC,
    PUBLIC_BUDGETS,
    RANDOM_BUDGETS,
    SCALE,
    Laboratory,
    Row,
    at_budget,
    private_start,
    value,
)

from recollect.audits.leakage.audit import LeakageAudit
from recollect.audits.leakage.decisions import JOINT_SHARE


def study(lab: Laboratory) -> Outcome:
    pairs: dict[str, tuple[Path, ...]] = {
        "private, against reference": (lab.trained(PRIVATE), lab.trained(OTHERS)),
        "reference, against private": (lab.trained(OTHERS), lab.trained(PRIVATE)),
        "public, by words": (lab.trained(PUBLIC),),
    }
    for name, public, budgets in (("random", False, RANDOM_BUDGETS), ("public", True, PUBLIC_BUDGETS)):
        model, reference = (lab.trained(private_start(group, public=public)) for group in ("private", "reference"))
        last = budgets[-1]
        pairs[f"DP from {name}, ε = {last:g}"] = at_budget(model, last), at_budget(reference, last)
        pairs[f"DP from {name}, ε = {last:g}, changed places"] = at_budget(reference, last), at_budget(model, last)
    rows = {
        f"{name}, top {k}": lab.leakage(*models, audited="strangers", top_k=k)
        for name, models in pairs.items()
        for k in (1, 5)
    }
    epsilons = [found for row in rows.values() if (found := value(row, "leakage_epsilon")) is not None]
    above = [found for row in rows.values() if (found := value(row, "leakage_epsilon_excess")) is not None]
    return Outcome(
        title="Models that never saw the users",
        scale=f"{SCALE} Audited are as many users of whom no model has seen anything.",
        figures=[
            Figure("audits of models that saw nobody", None, len(rows)),
            Figure("ε_l, lowest", None, min(epsilons, default=None)),
            Figure("ε_l, highest", None, max(epsilons, default=None)),
            Figure("ε_l above that of the controls, median", None, median(above) if above else None),
            Figure("audits in which anything comes out", None, sum(bool(row["sequences"]) for row in rows.values())),
            Figure(
                "audits that tell the excess", None, sum("leakage_excess" in row["findings"] for row in rows.values())
            ),
            Figure("audits whose excess covers 0", None, sum(covers_zero(row) for row in rows.values())),
            Figure("audits that flag anybody", None, sum(bool(value(row, "flagged_users")) for row in rows.values())),
            Figure("audits that find a leak", None, sum(finds(row) for row in rows.values())),
        ],
        details=dict(rows),
    )


def covers_zero(row: Row) -> bool:
    """Whether the excess is told, and its interval holds 0; there is none if nothing at all comes out."""
    if (excess := row["findings"].get("leakage_excess")) is None:
        return False
    low, high = excess["interval"] or (excess["value"], excess["value"])
    return bool(low <= 0 <= high)


def finds(row: Row) -> bool:
    """Whether the audit says that its users are given away."""
    p, flagged = value(row, "leakage_p"), value(row, "flagged_users")
    return bool(p is not None and p <= LeakageAudit().alpha * JOINT_SHARE) or bool(flagged)
