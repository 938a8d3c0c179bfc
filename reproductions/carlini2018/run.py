"""The studies of Carlini et al. 2018, "The Secret Sharer", one after the other.

    python reproductions/carlini2018/run.py --data DATA [--work WORK] [STUDY …]

Killed at any moment and started again, it goes on where it was.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from common.running import reproduce
from laboratory import Laboratory

STUDIES = (
    "figure4_epochs",
    "section71_extraction",
    "figure2_curve",
    "figure6_estimates",
    "section41_one_epoch",
    "section66_likeliest",
    "table3_context",
    "table4_secrets",
    "table1_architectures",
    "table2_batches",
    "table7_privacy",
    "appendix_d_regularisation",
    "appendix_f_sanitising",
    "section63_optimisers",
    "section73_words",
    "table6_translation",
    "section72_enron",
    "whole_treebank",
    "whole_treebank_constant",
    "section61_half_known",
    "table1_nine",
    "table2_cells",
    "table4_cells",
    "section63_six_optimisers",
    "appendix_d_dropout",
    "table7_rows",
    "section72_large",
)


if __name__ == "__main__":
    sys.exit(reproduce(Path(__file__).parent, STUDIES, Laboratory))
