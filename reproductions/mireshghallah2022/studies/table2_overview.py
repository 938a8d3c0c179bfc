"""Table 2: the loss against the likelihood ratio, by record and by patient, against two kinds of non-members."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import FPR, SCALE, Laboratory, Row, Setting, chosen, long, value

from recollect.audits.membership.audit import MembershipAudit
from recollect.signals.evidence import TARGET

FINDINGS = {
    "AUC, loss": "loss_auc",
    "AUC, ratio": "auc",
    "precision, loss at the mean": "loss_precision_at_mean",
    f"precision, loss at {FPR:g}": f"loss_precision_at_fpr_{FPR:g}",
    f"precision, ratio at {FPR:g}": f"precision_at_fpr_{FPR:g}",
    "recall, loss at the mean": "loss_recall_at_mean",
    f"recall, loss at {FPR:g}": f"loss_recall_at_fpr_{FPR:g}",
    f"recall, ratio at {FPR:g}": f"recall_at_fpr_{FPR:g}",
}
"""The rows of the paper's tables: its threshold μ is the mean of training, the other that of the population."""
PAPER = {
    "by record, other notes": (0.662, 0.900, 0.615, 0.612, 0.889, 0.557, 0.156, 0.792),
    "by record, reports": (0.812, 0.881, 0.776, 0.796, 0.875, 0.558, 0.390, 0.699),
    "by patient, other notes": (0.915, 0.992, 0.875, 0.875, 0.934, 0.495, 0.495, 1.0),
    "by patient, reports": (1.0, 1.0, 1.0, 0.925, 0.925, 0.495, 1.0, 1.0),
}


def study(lab: Laboratory) -> Outcome:
    setting, rows, unseen = Setting(), dict[str, Row](), dict[str, Row]()
    for name in PAPER:
        by, wanted = ("record", long) if name.startswith("by record") else ("user", None)
        members, others, population = lab.parts(setting, wanted)
        parts = members, chosen(lab.reports, wanted) if name.endswith("reports") else others, population
        rows[name] = lab.attack(setting, parts, by=by)
        unseen[name] = lab.told({TARGET: lab.general()}, parts, MembershipAudit(signal="loss", fpr=(FPR,), by=by))
    loss = lab.attack(setting, lab.parts(setting, long), signal="loss")
    figures = [figure for name, row in rows.items() for figure in compared(name, row, PAPER[name])]
    # the reference saw no candidate: what its loss tells apart is not membership
    figures += [Figure(f"{name}: AUC, loss of the reference", None, value(row, "auc")) for name, row in unseen.items()]
    figures += [Figure(f"{name}: told by words alone", None, value(row, "blind_auc")) for name, row in rows.items()]
    return Outcome(
        title="Table 2: loss against likelihood ratio",
        scale=f"{SCALE} By record: sentences of 20 to 60 words. By patient: all sentences of a note.",
        figures=[*figures, *_low(rows["by record, other notes"], loss)],
        details={**rows, "loss": loss, "unseen": unseen},
    )


def compared(name: str, row: Row, paper: tuple[float | None, ...]) -> list[Figure]:
    """A column of one of the paper's tables beside ours."""
    return [
        Figure(f"{name}: {what}", p, value(row, ours)) for p, (what, ours) in zip(paper, FINDINGS.items(), strict=True)
    ]


def _low(ratio: Row, loss: Row) -> list[Figure]:
    """How much more is found where only few others may be flagged: the paper's factor of 51 at 1 %."""
    found = []
    for rate in (0.1, 0.01):
        ours, theirs = (value(row, f"tpr_at_fpr_{rate:g}") for row in (ratio, loss))
        found += [
            Figure(f"TPR at FPR {rate:g}, {what}", None, tpr) for what, tpr in (("ratio", ours), ("loss", theirs))
        ]
        factor = ours / theirs if ours is not None and theirs else None
        found.append(Figure(f"TPR at FPR {rate:g}, ratio over loss", 51 if rate == 0.01 else None, factor))
    return found
