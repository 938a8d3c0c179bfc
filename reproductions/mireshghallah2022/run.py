"""The studies of Mireshghallah et al. 2022, "Quantifying Privacy Risks of Masked Language Models", one after the other.

    python reproductions/mireshghallah2022/run.py --data DATA [--work WORK] [STUDY …]

Killed at any moment and started again, it goes on where it was.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from common.running import reproduce
from laboratory import Laboratory

STUDIES = (
    "table2_overview",
    "figures3_to_5",
    "table3_length",
    "table4_size",
    "table5_names",
    "table6_references",
    "table7_exposed",
    "blogs_by_user",
    "more_notes",
)

if __name__ == "__main__":
    sys.exit(reproduce(Path(__file__).parent, STUDIES, Laboratory))
