"""The tables of a leakage result; text is masked unless `show_text` is set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from recollect.audits.leakage.decisions import Decisions
from recollect.audits.leakage.leakage_epsilon import Leak
from recollect.audits.leakage.occurrences import Occurrences
from recollect.audits.leakage.personal_data import detect_personal_data
from recollect.files.arrow_tables import build_table_of_rows
from recollect.results.text_masks import mask_unless_shown


def build_sequences_table(leaks: Mapping[int, Leak], counts: Occurrences, *, show_text: bool) -> pa.Table:
    """The table of sequences, those that leak most first."""
    rows = [
        {
            "user": leak.user,
            "record": leak.record,
            "start": leak.start,
            "text": mask_unless_shown(leak.text, show_text=show_text),
            "context": mask_unless_shown(leak.context, show_text=show_text),
            "words": leak.words,
            "users": int(counts.users[run]),
            "times": int(counts.times[run]),
            "predicted": leak.predicted,
            "perplexity": _to_cell(math.exp(min(700.0, leak.nats / leak.words))),
            "reference_perplexity": _to_cell(math.exp(min(700.0, leak.reference_nats / leak.words))),
            "epsilon": _to_cell(leak.epsilon),
            "epsilon_sum": _to_cell(leak.gain),
            "personal": ", ".join(detect_personal_data(leak.text)),
        }
        for run, leak in sorted(leaks.items(), key=lambda each: (_get_leak_sort_key(each[1]), each[1].text))
    ]
    return build_table_of_rows(rows, _SEQUENCES)


_SEQUENCES = pa.schema(
    [
        *((name, pa.string()) for name in ("user", "record")),
        ("start", pa.int64()),
        *((name, pa.string()) for name in ("text", "context")),
        *((name, pa.int64()) for name in ("words", "users", "times", "predicted")),
        *((name, pa.float64()) for name in ("perplexity", "reference_perplexity", "epsilon", "epsilon_sum")),
        ("personal", pa.string()),
    ]
)


def build_users_table(leaks: Mapping[int, Leak], decisions: Decisions, *, withheld: bool = False) -> pa.Table:
    """The table of users, largest leak first."""
    theirs: dict[str, list[Leak]] = {}
    for leak in leaks.values():
        theirs.setdefault(leak.user, []).append(leak)
    rows = [
        {
            "user": user,
            "sequences": len(theirs.get(user, ())),
            "longest": max((leak.words for leak in theirs.get(user, ())), default=0),
            "epsilon": _find_largest_cell(leak.epsilon for leak in theirs.get(user, ())),
            "epsilon_sum": _find_largest_cell(leak.gain for leak in theirs.get(user, ())),
            "p_corrected": None if withheld else float(p),
            "flagged": None if withheld else bool(flag),
        }
        for user, p, flag in zip(decisions.comparison.users, decisions.p_corrected, decisions.flags, strict=True)
    ]
    kinds = [("user", pa.string()), ("sequences", pa.int64()), ("longest", pa.int64())]
    kinds += [(name, pa.float64()) for name in ("epsilon", "epsilon_sum", "p_corrected")]
    kinds += [("flagged", pa.bool_())]
    rows.sort(key=lambda row: (-_get_cell_sort_key(row["epsilon_sum"]), -int(row["sequences"] or 0), str(row["user"])))
    return build_table_of_rows(rows, pa.schema(kinds))


def build_length_table(leaks: Mapping[int, Leak]) -> pa.Table:
    """The table of sequences and their epsilons by how many words they have."""
    return _build_group_table("words", [(leak.words, leak) for leak in leaks.values()])


def build_times_table(leaks: Mapping[int, Leak], counts: Occurrences) -> pa.Table:
    """The table of the same by how often their user wrote them: up to 1, 2, 4, 8 times and so on."""
    return _build_group_table(
        "times_up_to", [(_round_up_to_power(int(counts.times[run])), leak) for run, leak in leaks.items()]
    )


def build_top_k_table(by_k: Mapping[int, Mapping[int, Leak]]) -> pa.Table:
    """The table of the same by how many tokens the model shows."""
    return _build_group_table("top_k", [(k, leak) for k, leaks in by_k.items() for leak in leaks.values()])


def build_null_table(null: Mapping[int, Leak]) -> pa.Table:
    """The table of the sequences of the null distribution, without texts, those that leak most first."""
    rows = [
        {
            "user": leak.user,
            "words": leak.words,
            "epsilon": _to_cell(leak.epsilon),
            "epsilon_sum": _to_cell(leak.gain),
        }
        for leak in sorted(null.values(), key=lambda each: (_get_leak_sort_key(each), each.user, each.text))
    ]
    kinds = [("user", pa.string()), ("words", pa.int64()), ("epsilon", pa.float64()), ("epsilon_sum", pa.float64())]
    return build_table_of_rows(rows, pa.schema(kinds))


def _build_group_table(name: str, pairs: Iterable[tuple[int, Leak]]) -> pa.Table:
    """A table of sequences, users and epsilons of each group of leaks, in ascending order."""
    groups: dict[int, list[Leak]] = {}
    for key, leak in pairs:
        groups.setdefault(key, []).append(leak)
    rows = [
        {name: key, "sequences": len(each), "users": len({leak.user for leak in each}), **_summarise_epsilons(each)}
        for key, each in sorted(groups.items())
    ]
    whole = [(column, pa.int64()) for column in (name, "sequences", "users")]
    return build_table_of_rows(rows, pa.schema([*whole, *((column, pa.float64()) for column in _SUMMARY)]))


_SUMMARY = ("epsilon", "epsilon_median", "epsilon_p99", "epsilon_sum")


def _summarise_epsilons(leaks: Iterable[Leak]) -> dict[str, float | None]:
    """Columns of a table that summarise leaks: the largest, median and 99th percentile of epsilon, the largest sum."""
    known = [leak for leak in leaks if not math.isnan(leak.gain)]
    if not known:
        return dict.fromkeys(_SUMMARY)
    epsilons = [leak.epsilon for leak in known]
    with np.errstate(invalid="ignore"):
        middle, high = map(_to_cell, np.quantile(epsilons, [0.5, 0.99]).tolist())  # none between infinite ones
    return dict(zip(_SUMMARY, (max(epsilons), middle, high, max(leak.gain for leak in known)), strict=True))


def _round_up_to_power(times: int) -> int:
    """The next power of two: the row of the table of times that a sequence belongs to.

    >>> [_round_up_to_power(times) for times in (1, 2, 3, 9)]
    [1, 2, 4, 16]
    """
    return 1 << (times - 1).bit_length()


def _find_largest_cell(values: Iterable[float]) -> float | None:
    """The largest number as a cell of a table; null if there is none."""
    return max((value for value in values if not math.isnan(value)), default=None)


def _to_cell(value: float) -> float | None:
    """A number as a cell of a table: null where there is none."""
    return None if math.isnan(value) else value


def _get_cell_sort_key(value: Any) -> float:
    """By what rows of a table are sorted; below all where there is no number."""
    return -math.inf if value is None else float(value)


def _get_leak_sort_key(leak: Leak) -> tuple[float, int]:
    """By what rows of a table are sorted: what leaks most comes first."""
    return (-_get_cell_sort_key(_to_cell(leak.gain)), -leak.words)
