"""Table 6: two references, and what a reference of another domain costs."""

from __future__ import annotations

from common.outcomes import Outcome
from laboratory import ARTICLES, SCALE, Laboratory, Row, Setting
from studies.table2_overview import compared
from studies.table5_names import NAMED, candidates

from recollect.audits.membership.audit import MembershipAudit
from recollect.signals.evidence import REFERENCE, TARGET

PAPER = {
    ("without names", "other notes"): (0.662, 0.900, 0.615, 0.612, 0.889, 0.557, 0.156, 0.792),
    ("without names", "an encyclopedia"): (0.662, 0.883, 0.615, 0.612, 0.878, 0.557, 0.156, 0.715),
    ("members named", "other notes"): (0.561, 0.960, 0.530, 0.441, 0.902, 0.540, 0.078, 0.913),
    ("members named", "an encyclopedia"): (0.561, 0.811, 0.530, 0.441, 0.829, 0.540, 0.078, 0.480),
}


def study(lab: Laboratory) -> Outcome:
    references = {"other notes": lab.general(), "an encyclopedia": lab.encyclopedia()}
    audit, rows, figures = MembershipAudit(signal="ratio", fpr=(0.1,)), dict[str, Row](), []
    for (words, reference), paper in PAPER.items():
        target = lab.target(NAMED if words == "members named" else Setting())
        models = {TARGET: target, REFERENCE: references[reference]}
        name = f"{words}, reference of {reference}"
        rows[name] = lab.told(models, candidates(lab, words, "record"), audit)
        figures += compared(name, rows[name], paper)
    scale = f"{SCALE} The second reference was trained on {ARTICLES:,} sentences of an encyclopedia."
    return Outcome(title="Table 6: the choice of the reference", scale=scale, figures=figures, details=rows)
