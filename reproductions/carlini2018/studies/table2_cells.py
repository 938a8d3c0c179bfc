"""Table 2: batch sizes of 16 to 128 and 50 to 250 units, three models a cell."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from common.outcomes import Figure, Outcome
from laboratory import SEEDS, TEN, Laboratory, over_seeds
from several import summarised

UNITS = (50, 100, 150, 200, 250)
PAPER = {
    16: (1.7, 4.3, 6.9, 9.0, 6.4),
    32: (4.0, 6.2, 14.4, 14.1, 14.6),
    64: (4.8, 11.7, 19.2, 18.9, 21.3),
    128: (9.9, 14.0, 25.9, 32.5, 35.4),
}
"""Estimated exposure. Batches of 256 and more would leave a few steps an epoch of so little text."""


def study(lab: Laboratory) -> Iterator[Outcome]:
    figures: list[Figure] = []
    for batch, (place, units) in product(PAPER, enumerate(UNITS)):
        name = f"batch {batch}, {units} units"
        rows = over_seeds(lab, "table2_cells", name, f"training.batch_size={batch}", f"model.units={units}")
        figures += summarised(name, rows, bits=PAPER[batch][place])
        yield Outcome(
            title="Table 2: batch size and units, twenty cells",
            scale=f"2 % of the treebank, {TEN} epochs, {len(SEEDS)} models a cell instead of ten; 20 of 35 cells.",
            figures=list(figures),
        )
