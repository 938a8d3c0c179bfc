"""Table 2: batch size and number of units."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import COUNTED, TEN, Laboratory, after_ten

PAPER = {(32, 50): 4.0, (32, 200): 14.1, (64, 50): 4.8, (64, 200): 18.9}
"""Estimated exposure by batch size and units."""


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for (batch, units), printed in PAPER.items():
        changes = () if (batch, units) == (32, 200) else (f"training.batch_size={batch}", f"model.units={units}")
        model, canaries = after_ten(lab, *changes)
        row = lab.exposure(model, COUNTED, canaries)
        details[f"batch {batch}, {units} units"] = row
        figures += [
            Figure(f"batch {batch}, {units} units: estimated exposure, bits", printed, row["skew_normal_bits"]),
            Figure(f"batch {batch}, {units} units: exposure, bits", None, row["exposure_bits"]),
            Figure(f"batch {batch}, {units} units: test loss, nats", None, lab.test_loss(model)),
        ]
    return Outcome(
        title="Table 2: batch size and units",
        scale=f"2 % of the treebank, {TEN} epochs, one model for each cell instead of ten.",
        figures=figures,
        details=details,
    )
