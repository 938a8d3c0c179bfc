"""Table 4: the size of the target, and how long it was trained."""

from __future__ import annotations

from common.outcomes import Outcome
from laboratory import EPOCHS, LARGE, LONGER, SCALE, SMALL, Laboratory, Setting, long
from studies.table2_overview import compared

from recollect.audits.membership.audit import MembershipAudit
from recollect.signals.evidence import REFERENCE, TARGET

TARGETS = {
    "small": Setting(size=SMALL),
    "small, longer": Setting(size=SMALL, epochs=LONGER),
    "large": Setting(size=LARGE),
    "large, longer": Setting(size=LARGE, epochs=LONGER),
}
PAPER = {
    "small": (0.662, 0.900, 0.615, 0.612, 0.889, 0.557, 0.156, 0.792),
    "small, longer": (0.656, 0.894, 0.610, 0.612, 0.888, 0.558, 0.156, 0.785),
    "large": (0.679, 0.904, 0.624, 0.639, 0.889, 0.564, 0.176, 0.792),
    "large, longer": (0.700, 0.905, 0.649, 0.691, 0.889, 0.561, 0.222, 0.793),
}


def study(lab: Laboratory) -> Outcome:
    # the small general model is the reference of all four, as PubMed-BERT, which is no larger than the base, was
    audit = MembershipAudit(signal="ratio", fpr=(0.1,))
    rows = {
        name: lab.told({TARGET: lab.target(setting), REFERENCE: lab.general()}, lab.parts(setting, long), audit)
        for name, setting in TARGETS.items()
    }
    figures = [figure for name, row in rows.items() for figure in compared(name, row, PAPER[name])]
    scale = (
        f"{SCALE} Large: 2 layers of 128. Longer: {LONGER} epochs in place of {EPOCHS}; the paper's sizes are BERT's."
    )
    return Outcome(title="Table 4: size and training length", scale=scale, figures=figures, details=rows)
