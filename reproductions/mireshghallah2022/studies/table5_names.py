"""Table 5: a patient's name before every record of the target's."""

from __future__ import annotations

from typing import Literal

from common.outcomes import Figure, Outcome
from laboratory import SCALE, Laboratory, Parts, Row, Setting, long, value
from studies.table2_overview import compared

NAMED = Setting(names=True)
Level = Literal["record", "user"]
PAPER: dict[tuple[str, Level], tuple[float | None, ...]] = {
    ("without names", "record"): (0.662, 0.900, 0.615, 0.612, 0.889, 0.557, 0.156, 0.792),
    ("members named", "record"): (0.561, 0.960, 0.530, 0.441, 0.902, 0.540, 0.078, 0.913),
    ("all named", "record"): (None,) * 8,
    ("without names", "user"): (0.915, 0.992, 0.875, 0.875, 0.934, 0.495, 0.495, 1.0),
    ("members named", "user"): (0.953, 1.0, 1.0, 0.911, 0.925, 0.485, 0.828, 1.0),
    ("all named", "user"): (None,) * 8,
}
"""In the paper only members have names, so names alone tell who is one; with names on both sides they do not."""


def study(lab: Laboratory) -> Outcome:
    figures, details = list[Figure](), dict[str, Row]()
    for (words, by), paper in PAPER.items():
        setting = Setting() if words == "without names" else NAMED
        row = lab.attack(setting, candidates(lab, words, by), by=by)
        name = f"{words}, by {'patient' if by == 'user' else 'record'}"
        details[name] = row
        figures += [*compared(name, row, paper), Figure(f"{name}: told by words alone", None, value(row, "blind_auc"))]
    scale = f"{SCALE} Names are made up; every sentence of a patient has the same."
    return Outcome(title="Table 5: names before records", scale=scale, figures=figures, details=details)


def candidates(lab: Laboratory, words: str, by: Level) -> Parts:
    """Members, others and population, of whom all, some or none have names."""
    wanted = long if by == "record" else None
    plain, named = lab.parts(Setting(), wanted), lab.parts(NAMED, wanted)
    return {"without names": plain, "members named": (named[0], *plain[1:]), "all named": named}[words]
