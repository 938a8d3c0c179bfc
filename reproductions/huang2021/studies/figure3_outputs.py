"""Figure 3: class probabilities of a set that is in, by the target, by a calibration model, and by a model of the set.

The paper's point: the target's outputs overlap with those of the model of the set, and yet their KS distance is larger
than that of the calibration model's.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from cells import held
from common.outcomes import Figure, Outcome
from drawing import cumulative
from laboratory import Laboratory
from scipy import special
from tables import MNIST, XRAY, Part, calibration_of, queries, target_of

from recollect.audits.removal.ks import measure_ks_distance
from recollect.models.loading.loader import load_model


def study(lab: Laboratory) -> Outcome:
    figures = [figure for part in (MNIST, XRAY) for figure in _of(lab, part, part.trainings[0])]
    return Outcome(
        title="Figure 3: outputs that KS compares",
        scale="One training of each part, k = 100. The paper draws a query set of X-rays and prints no numbers; ours "
        "are figure3-*.svg among the results.",
        figures=figures,
    )


def _of(lab: Laboratory, part: Part, seed: int) -> Iterator[Figure]:
    """Both distances of the first query set, and its outputs drawn."""
    name, recipe = part.inside[0], part.trainer()
    query = queries(lab, part, seed)[name]
    folders = {
        "target": target_of(lab, part, seed),
        "calibration model": str(lab.trained(recipe, calibration_of(lab, part, seed, 100), 0)),
        "query model": str(lab.trained(recipe, query, 0)),
    }
    logits = {who: held(load_model(folder), query).whole.logits for who, folder in folders.items()}
    found = {who: np.asarray(each, dtype=np.float64) for who, each in logits.items() if each is not None}
    for who in ("target", "calibration model"):
        apart = measure_ks_distance(found[who], found["query model"])
        yield Figure(f"{name}: KS distance of {who} and query model", None, apart)
    sides = {who: special.softmax(each, axis=1).ravel() for who, each in found.items()}
    cumulative(sides, "class probability", lab.work / "results" / f"figure3-{part.name}.svg")
