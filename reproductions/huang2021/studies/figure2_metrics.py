"""Figure 2: correctness, confidence and negative entropy of a set that is in, one that is not, and the far one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from cells import held
from common.outcomes import Figure, Outcome
from drawing import Floats, cumulative
from laboratory import Laboratory
from tables import MNIST, XRAY, Part, queries, target_of

from recollect.models.loading.loader import load_model

CLOSE = 0.9
"""A confidence below this is counted, and an entropy above its complement's."""


def study(lab: Laboratory) -> Outcome:
    figures = [figure for part in (MNIST, XRAY) for figure in _of(lab, part, part.trainings[0])]
    return Outcome(
        title="Figure 2: the three metrics",
        scale="One training of each part. The paper shows curves and no numbers; ours are figure2-*.svg among the "
        "results.",
        figures=figures,
    )


def _of(lab: Laboratory, part: Part, seed: int) -> Iterator[Figure]:
    """The metrics of one part, in numbers and drawn."""
    model = load_model(target_of(lab, part, seed))
    drawn: dict[str, dict[str, Floats]] = {"confidence": {}, "negative entropy": {}}
    every = queries(lab, part, seed)
    for name in (part.inside[0], part.outside, part.far):
        said = held(model, every[name]).whole
        assert said.logprob is not None
        assert said.entropy is not None
        drawn["confidence"][name] = np.exp(said.logprob).astype(np.float64)
        drawn["negative entropy"][name] = -said.entropy.astype(np.float64)
        yield Figure(f"{name}: correct", None, float((said.rank == 1).mean()))
        yield Figure(f"{name}: confidence below {CLOSE}", None, float((drawn["confidence"][name] < CLOSE).mean()))
        yield Figure(f"{name}: mean negative entropy", None, float(drawn["negative entropy"][name].mean()))
    for metric, sides in drawn.items():
        cumulative(sides, metric, lab.work / "results" / f"figure2-{part.name}-{metric.replace(' ', '-')}.svg")
