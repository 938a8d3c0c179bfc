"""The core setting with a constant learning rate: a test of why the model of `whole_treebank` does not know its secret.

There exposure rose by about two bits an epoch until the plateau began to halve the rate, and then stopped. If the
schedule, whose settings cannot be read in our copy of the paper, is the reason, exposure goes on rising here.
"""

from __future__ import annotations

from collections.abc import Iterator

from common.outcomes import Outcome
from laboratory import Laboratory
from studies.whole_treebank import Core, outcomes

CONSTANT = Core(
    study="whole_treebank_constant",
    title="The same with a constant learning rate",
    learning_rate="the paper's network, a constant learning rate of 0.001",
    changes=("training.schedule.kind=constant",),
)


def study(lab: Laboratory) -> Iterator[Outcome]:
    yield from outcomes(lab, CONSTANT)
