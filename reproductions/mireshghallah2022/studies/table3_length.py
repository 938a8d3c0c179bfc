"""Table 3: short and long records."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import LONG, SCALE, WORDS, Laboratory, Row, Setting, chosen, long
from studies.table2_overview import compared

from recollect.corpora.record import Record

SHORT_WORDS, LONG_WORDS = f"{WORDS[0]} to {LONG - 1} words", f"{LONG} to {WORDS[1]} words"
PAPER = {
    f"{SHORT_WORDS}, other notes": (0.516, 0.830, 0.509, 0.420, 0.873, 0.553, 0.072, 0.682),
    f"{SHORT_WORDS}, reports": (0.756, 0.845, 0.700, 0.725, 0.863, 0.553, 0.263, 0.629),
    f"{LONG_WORDS}, other notes": (0.662, 0.900, 0.615, 0.612, 0.889, 0.557, 0.156, 0.792),
    f"{LONG_WORDS}, reports": (0.812, 0.881, 0.776, 0.796, 0.875, 0.558, 0.390, 0.699),
}


def study(lab: Laboratory) -> Outcome:
    setting, rows = Setting(), dict[str, Row]()
    for name in PAPER:
        wanted = long if name.startswith(LONG_WORDS) else _short
        members, others, population = lab.parts(setting, wanted)
        kind = chosen(lab.reports, wanted) if name.endswith("reports") else others
        rows[name] = lab.attack(setting, (members, kind, population))
    figures: list[Figure] = [figure for name, row in rows.items() for figure in compared(name, row, PAPER[name])]
    return Outcome(title="Table 3: length of the record", scale=SCALE, figures=figures, details=rows)


def _short(record: Record) -> bool:
    return not long(record)
