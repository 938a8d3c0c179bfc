"""The ROC curve as a table: computed once, saved with the result, and drawn by the report."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from recollect.files.arrow_tables import build_table
from recollect.stats.groups import ValuesLike
from recollect.stats.roc import roc_curve

MAX_POINTS: Final = 2000
"""Points of the curve that are kept; a plot shows no more."""
READ_AT: Final = (0.001, 0.01, 0.1)
"""False positive rates at which the kept points read as the whole curve does."""


def build_roc_table(members: ValuesLike, non_members: ValuesLike) -> pa.Table:
    """The curve of true against false positive rates, thinned where no axis, linear or logarithmic, shows it.

    Args:
        members: Scores of members; higher is more evidence of training.
        non_members: Scores of non-members.

    Raises:
        NotEnoughData: One side is empty.
    """
    curve = roc_curve(members, non_members).thin(MAX_POINTS, rates=READ_AT)
    return build_table({"fpr": curve.fpr, "tpr": curve.tpr})
