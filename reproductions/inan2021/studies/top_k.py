"""Top 1 against top 3 and 5: what comes out if the model shows more than its likeliest word (Figure 1 of the paper)."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import OTHERS, PRIVATE, SCALE, Laboratory, value


def study(lab: Laboratory) -> Outcome:
    rows = {k: lab.leakage(lab.trained(PRIVATE), lab.trained(OTHERS), top_k=k) for k in (1, 3, 5)}
    figures = []
    for k, row in rows.items():
        longest = max((each["words"] for each in row["sequences"]), default=0)
        figures += [
            Figure(f"top {k}: unique sequences", 3757 if k == 1 else None, value(row, "unique_sequences")),
            Figure(f"top {k}: sequences of 10 or more words", 759 if k == 1 else None, long_ones(row["sequences"])),
            Figure(f"top {k}: words of the longest", None, longest),
            Figure(f"top {k}: ε_l", 17.75 if k == 1 else None, value(row, "leakage_epsilon")),
            Figure(f"top {k}: ε_l of users not seen", None, value(row, "leakage_epsilon_null")),
            Figure(f"top {k}: median ε of the sequences", None, value(row, "leakage_epsilon_median")),
            Figure(f"top {k}: excess, nats", None, value(row, "leakage_excess")),
            Figure(f"top {k}: users flagged, share", None, value(row, "flagged_users")),
        ]
    return Outcome(
        title="Top 1, 3 and 5", scale=SCALE, figures=figures, details={f"top {k}": row for k, row in rows.items()}
    )


def long_ones(sequences: list[dict[str, int]]) -> int:
    """How many sequences the paper would call long: more than nine words."""
    return sum(each["words"] > 9 for each in sequences)
