"""Table 2: batch size and number of units."""

from __future__ import annotations

from laboratory import COUNTED, EPOCHS, Laboratory, small
from outcomes import Figure, Outcome

PAPER = {(32, 50): 4.0, (32, 200): 14.1, (64, 50): 4.8, (64, 200): 18.9}
"""Estimated exposure by batch size and units."""


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for (batch, units), printed in PAPER.items():
        model = lab.trained(small(f"training.batch_size={batch}", f"model.units={units}"))
        row = lab.exposure(model.folder, COUNTED, model.canaries[0])
        details[f"batch {batch}, {units} units"] = row
        figures += [
            Figure(f"batch {batch}, {units} units: estimated exposure, bits", printed, row["skew_normal_bits"]),
            Figure(f"batch {batch}, {units} units: exposure, bits", None, row["exposure_bits"]),
            Figure(f"batch {batch}, {units} units: test loss, nats", None, lab.test_loss(model.folder)),
        ]
    return Outcome(
        title="Table 2: batch size and units",
        scale=f"2 % of the treebank, {EPOCHS} epochs, one model for each cell instead of ten.",
        figures=figures,
        details=details,
    )
