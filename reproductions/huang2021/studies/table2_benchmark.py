"""Table 2: MNIST, a perceptron, 2,000 queried images, calibration sets of falling quality."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import QUALITIES, Laboratory
from mnist import KS_TRAININGS, cells, errors, scale

INSIDE = ("M1", "M2", "M3", "M4", "M5")


def study(lab: Laboratory) -> Outcome:
    rows = [row for row in cells(lab) if row["size"] == 2000 and row["query"] != "drawn"]
    figures = []
    for method, printed in (("ema", 0), ("ks", None), ("calibrated", None)):
        chosen = [row for row in rows if row["method"] == method]
        if not chosen:
            continue
        for names, truth in ((INSIDE, "still there"), (("M6",), "gone"), (("S",), "gone")):
            some = [row for row in chosen if row["query"] in names]
            label = f"{method}, {names[0]}{'–' + names[-1] if len(names) > 1 else ''}"
            wrong, open_ = errors(some, truth)
            figures += [
                Figure(f"{label}: wrong, of {len(some)}", printed, wrong),
                Figure(f"{label}: cannot tell", None, open_),
            ]
    for quality in QUALITIES:
        chosen = [row for row in rows if row["method"] == "calibrated" and row["quality"] == quality]
        for name in ("M1", "M6"):
            shares = [row["share"][0] for row in chosen if row["query"] == name and row["share"]]
            if shares:
                mean = sum(shares) / len(shares)
                figures.append(Figure(f"calibrated, k = {quality}, {name}: share still in", None, mean))
    return Outcome(
        title="Table 2: the benchmark, 2,000 queried images",
        scale=f"{scale(rows)} Fashion-MNIST in place of SVHN (S). KS in {KS_TRAININGS} of the trainings.",
        figures=figures,
        details={"rows": rows},
    )
