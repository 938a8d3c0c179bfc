"""Where the memory shows: the ranks of frequent and of rare words (Song and Shmatikov 2019, Figures 5 and 6)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.audits.provenance.words import Floats, Words

BANDS = (0, 1, 10, 100, 1000, 10_000)
"""From so many times on that the shadows' users wrote a word, a band begins."""
FEWEST = 20
"""Words of each side without which a band is left out."""


def by_frequency(words: Words, chosen: NDArray[np.bool_], chance: NDArray[np.bool_]) -> pa.Table:
    """The target's median rank of words by how often others wrote them; null where it does not show the middle word.

    Args:
        words: Of everybody; the target is the first model.
        chosen: Whose words are looked at [users].
        chance: Of whom it is known that they are no members [users].
    """
    band = np.searchsorted(BANDS, words.count, side="right") - 1
    rows = []
    for place, fewest in enumerate(BANDS):
        inside = words.log_rank[0, (band == place) & chosen[words.user]]
        beside = words.log_rank[0, (band == place) & chance[words.user]]
        if min(len(inside), len(beside)) >= FEWEST:
            row = {"written": fewest, "words": len(inside), "rank": _middle(inside)}
            rows.append(row | {"calibration_words": len(beside), "calibration_rank": _middle(beside)})
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


_SCHEMA = pa.schema(
    {
        "written": pa.int64(),
        "words": pa.int64(),
        "rank": pa.float64(),
        "calibration_words": pa.int64(),
        "calibration_rank": pa.float64(),
    }
)


def _middle(log_rank: Floats) -> float | None:
    """The median rank; the lower of two middle ones, so that what is not shown stays out."""
    middle = float(np.sort(log_rank)[(len(log_rank) - 1) // 2])
    return float(np.exp(middle)) if np.isfinite(middle) else None
