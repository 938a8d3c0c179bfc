"""The studies of Inan et al. 2021, "Training Data Leakage Analysis in Language Models", one after the other.

python reproductions/inan2021/run.py --data DATA [--work WORK] [STUDY …]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from common.running import reproduce
from laboratory import Laboratory

STUDIES = ("table1_models", "top_k", "null_model", "duplicates", "budgets", "retrained")


if __name__ == "__main__":
    sys.exit(reproduce(Path(__file__).parent, STUDIES, Laboratory))
