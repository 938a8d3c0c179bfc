"""Table 7: which records are exposed, from what they look like."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import SCALE, Laboratory, Row, Setting

from recollect.audits.membership.audit import MembershipAudit
from recollect.audits.membership.susceptibility import EMBEDDED, EMBEDDER
from recollect.signals.evidence import REFERENCE, TARGET

RATES = (0.05, 0.1)
"""At the paper's 10 % two thirds of our members are found out, at 5 % about half, as in its table (45 %)."""
CELLS = ("train_precision", "train_recall", "test_precision", "test_recall")
PAPER = {
    "digits": (0.0, 0.0, 0.0, 0.0),
    "length": (0.0, 0.0, 0.0, 0.0),
    "symbols": (0.712, 0.466, 0.692, 0.475),
    "rarest": (0.689, 0.405, 0.638, 0.392),
    "symbols & rarest": (0.739, 0.588, 0.711, 0.578),
    "length & symbols & rarest": (0.743, 0.613, 0.721, 0.613),
    "digits & length & symbols & rarest": (0.743, 0.613, 0.721, 0.613),
    EMBEDDED: (0.847, 0.831, 0.807, 0.797),
}


def study(lab: Laboratory) -> Outcome:
    setting = Setting()
    models = {TARGET: lab.target(setting), REFERENCE: lab.general(), EMBEDDER: lab.encyclopedia()}
    figures, details = list[Figure](), dict[str, Row]()
    for rate in RATES:
        row = lab.told(models, lab.parts(setting), MembershipAudit(signal="ratio", fpr=(rate,)))
        details[f"{rate:g}"] = row
        figures += columns(row, rate)
    scale = f"{SCALE} Sentences of 10 to 60 words. The embedding is that of the model of an encyclopedia."
    return Outcome(title="Table 7: which records are exposed", scale=scale, figures=figures, details=details)


def columns(row: Row, rate: float) -> list[Figure]:
    """The table for records that are found out at one false positive rate."""
    found = {each["features"]: each for each in row["tables"]["susceptibility"]}
    members = [each for each in row["tables"]["candidates"] if each["trained"]]
    detected = sum(each[f"flagged_at_fpr_{rate:g}"] for each in members) / len(members)
    return [
        Figure(f"at {rate:g}, members that are found out, share", 0.45, detected),
        *(
            Figure(f"at {rate:g}, {name}: {cell.replace('_', ' ')}", paper, found[name][cell])
            for name, papers in PAPER.items()
            for cell, paper in zip(CELLS, papers, strict=True)
        ),
    ]
