"""Table 4: the size of the target, and how long it was trained."""

from __future__ import annotations

from common.outcomes import Outcome
from laboratory import EPOCHS, LONGER, SCALE, SMALLER, Laboratory, Setting, long
from studies.table2_overview import compared

from recollect.audits.membership.audit import MembershipAudit
from recollect.signals.evidence import REFERENCE, TARGET

TARGETS = {
    "base": Setting(size=SMALLER),
    "base, longer": Setting(size=SMALLER, epochs=LONGER),
    "large": Setting(),
    "large, longer": Setting(epochs=LONGER),
}
PAPER = {
    "base": (0.662, 0.900, 0.615, 0.612, 0.889, 0.557, 0.156, 0.792),
    "base, longer": (0.656, 0.894, 0.610, 0.612, 0.888, 0.558, 0.156, 0.785),
    "large": (0.679, 0.904, 0.624, 0.639, 0.889, 0.564, 0.176, 0.792),
    "large, longer": (0.700, 0.905, 0.649, 0.691, 0.889, 0.561, 0.222, 0.793),
}


def study(lab: Laboratory) -> Outcome:
    # one reference for all four, as in the paper
    audit = MembershipAudit(signal="ratio", fpr=(0.1,))
    rows = {
        name: lab.told({TARGET: lab.target(setting), REFERENCE: lab.general()}, lab.parts(setting, long), audit)
        for name, setting in TARGETS.items()
    }
    figures = [figure for name, row in rows.items() for figure in compared(name, row, PAPER[name])]
    sizes = f"Large is the target of the other tables, base has 2 layers of 32. Longer: {LONGER} epochs, not {EPOCHS}."
    return Outcome(title="Table 4: size and training length", scale=f"{SCALE} {sizes}", figures=figures, details=rows)
