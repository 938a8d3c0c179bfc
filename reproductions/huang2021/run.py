"""The studies of Huang et al. 2021, "EMA: Auditing Data Removal from Trained Models", one after the other.

python reproductions/huang2021/run.py --data DATA [--work WORK] [STUDY …]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from common.running import reproduce
from laboratory import Laboratory

STUDIES = (
    "table2_benchmark",
    "table3a_xray",
    "table3b_xray",
    "table4_tests",
    "table4_xray",
    "table5_sizes",
    "table6_sizes",
    "shares",
    "equal_design",
    "figure2_metrics",
    "figure3_outputs",
    "language_model",
    "xray_full_width",
    "far_sets",
)


if __name__ == "__main__":
    sys.exit(reproduce(Path(__file__).parent, STUDIES, Laboratory))
