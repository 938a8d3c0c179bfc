"""Section 4: what is said again and again comes out first; sequences written once, and a corpus without repetitions."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import BOTS, DISTINCT, OTHERS, PASSAGE, PRIVATE, SCALE, Laboratory, Row, value

MANY = 10
"""How often a sequence stands in its user's data to be called repeated; the paper speaks of 50 and more."""


def study(lab: Laboratory) -> Outcome:
    reference = lab.trained(OTHERS)
    whole = lab.leakage(lab.trained(PRIVATE), reference)
    distinct = lab.leakage(lab.trained(DISTINCT), reference, audited="distinct")
    records = {group: len(lab.people(group)) for group in ("private", "distinct")}
    return Outcome(
        title="Section 4: repetitions",
        scale=f"{SCALE} Repetitions are taken out by `recollect sanitise --by duplicates --passage {PASSAGE}`: of "
        f"{records['private']:,} records {records['distinct']:,} stay. The reference is that of the private model.",
        figures=[
            *described("as they are", whole, paper=(17.75, 4.60, 759, 728)),
            *described("without repetitions", distinct, paper=(None, None, None, None)),
        ],
        details={"as they are": whole, "without repetitions": distinct, "records": records},
    )


def described(name: str, row: Row, paper: tuple[float | None, ...]) -> list[Figure]:
    """What sequences the bots have a part in, and the others."""
    sequences = row["sequences"]
    long = [each for each in sequences if each["words"] > 9]
    return [
        Figure(f"{name}: ε_l", paper[0], value(row, "leakage_epsilon")),
        Figure(f"{name}: ε_l of sequences written once", paper[1], value(row, "leakage_epsilon_once")),
        Figure(f"{name}: ε_l of Reddit users", None, largest(sequences, bots=False)),
        Figure(f"{name}: ε_l of the bots", None, largest(sequences, bots=True)),
        Figure(f"{name}: largest sum over a sequence, nats", None, value(row, "leakage_epsilon_sum")),
        Figure(f"{name}: sequences of 10 or more words", paper[2], len(long)),
        Figure(f"{name}: of these written {MANY} times or more", paper[3], sum(each["times"] >= MANY for each in long)),
        Figure(f"{name}: of these said by bots", None, sum(each["user"] in BOTS for each in long)),
        Figure(f"{name}: unique sequences", None, value(row, "unique_sequences")),
        Figure(f"{name}: excess, nats", None, value(row, "leakage_excess")),
        Figure(f"{name}: users flagged, share", None, value(row, "flagged_users")),
    ]


def largest(sequences: list[Row], *, bots: bool) -> float | None:
    """The largest ε of sequences by bots, or by others."""
    return max((each["epsilon"] for each in sequences if (each["user"] in BOTS) == bots), default=None)
