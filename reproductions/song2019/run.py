"""The studies of Song and Shmatikov 2019, "Auditing Data Provenance in Text-Generation Models", one after the other.

python reproductions/song2019/run.py --data DATA [--work WORK] [STUDY …]
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from common.running import reproduce
from laboratory import Laboratory

STUDIES = (
    "table1_targets",
    "unrestricted",
    "table3_output_size",
    "table3_cross_domain",
    "figure3_queries",
    "figure2_users",
    "section6_privacy",
    "table2_other_settings",
    "figures5_6_frequency",
    "figure4_noise",
    "table5_obfuscation",
    "figure7_ablation",
    "small_targets",
    "bloggers",
    "pieces",
    "ten_shadows",
    "figure3_pairs",
    "figure4_pairs",
    "figures5_6_pairs",
    "figure7_translation",
    "table2_pairs",
    "cross_domain_pairs",
    "ten_shadows_reddit",
    "figure2_more_users",
    "figure3_rarest_ranks",
)


if __name__ == "__main__":
    sys.exit(reproduce(Path(__file__).parent, STUDIES, Laboratory))
