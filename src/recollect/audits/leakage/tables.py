"""The tables of the leakage audit; text is masked unless the reader asked for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.audits.leakage.counting import Counts
from recollect.audits.leakage.measuring import Leak
from recollect.audits.leakage.null import Compared
from recollect.audits.leakage.personal import personal
from recollect.results.masking import shown


def sequences_table(leaked: Mapping[int, Leak], counts: Counts, *, show_text: bool) -> pa.Table:
    """Every sequence, those that give away most first."""
    rows = [
        {
            "user": leak.user,
            "record": leak.record,
            "start": leak.start,
            "text": shown(leak.text, show_text=show_text),
            "context": shown(leak.context, show_text=show_text),
            "words": leak.words,
            "users": int(counts.users[run]),
            "times": int(counts.times[run]),
            "predicted": leak.predicted,
            "perplexity": _number(math.exp(min(700.0, leak.nats / leak.words))),
            "reference_perplexity": _number(math.exp(min(700.0, leak.reference_nats / leak.words))),
            "epsilon": _number(leak.epsilon),
            "epsilon_sum": _number(leak.gain),
            "personal": ", ".join(personal(leak.text)),
        }
        for run, leak in sorted(leaked.items(), key=lambda each: (_first(each[1]), each[1].text))
    ]
    return pa.Table.from_pylist(rows, schema=_SEQUENCES)


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


def users_table(
    leaked: Mapping[int, Leak], compared: Compared, p_values: NDArray[np.float64], flagged: frozenset[str]
) -> pa.Table:
    """Every user, those of whom most is given away first."""
    theirs: dict[str, list[Leak]] = {}
    for leak in leaked.values():
        theirs.setdefault(leak.user, []).append(leak)
    rows = [
        {
            "user": user,
            "sequences": len(theirs.get(user, ())),
            "longest": max((leak.words for leak in theirs.get(user, ())), default=0),
            "epsilon": _largest(leak.epsilon for leak in theirs.get(user, ())),
            "epsilon_sum": _largest(leak.gain for leak in theirs.get(user, ())),
            "p_corrected": float(p),
            "flagged": user in flagged,
        }
        for user, p in zip(compared.users, p_values, strict=True)
    ]
    kinds = [("user", pa.string()), ("sequences", pa.int64()), ("longest", pa.int64())]
    kinds += [(name, pa.float64()) for name in ("epsilon", "epsilon_sum", "p_corrected")]
    kinds += [("flagged", pa.bool_())]
    rows.sort(key=lambda row: (-_real(row["epsilon_sum"]), -int(row["sequences"] or 0), str(row["user"])))
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def by_length_table(leaked: Mapping[int, Leak]) -> pa.Table:
    """Sequences and the largest epsilon by how many words they have."""
    return _grouped("words", [(leak.words, leak) for leak in leaked.values()])


def by_times_table(leaked: Mapping[int, Leak], counts: Counts) -> pa.Table:
    """The same by how often their user wrote them: up to 1, 2, 4, 8 times and so on."""
    return _grouped("times_up_to", [(_power(int(counts.times[run])), leak) for run, leak in leaked.items()])


def by_k_table(found: Mapping[int, Mapping[int, Leak]]) -> pa.Table:
    """The same by how many symbols the model shows."""
    return _grouped("top_k", [(k, leak) for k, leaked in found.items() for leak in leaked.values()])


def chance_table(null: Mapping[int, Leak]) -> pa.Table:
    """What is said where nothing was seen: sequences by their numbers alone, those that give away most first."""
    rows = [
        {
            "user": leak.user,
            "words": leak.words,
            "epsilon": _number(leak.epsilon),
            "epsilon_sum": _number(leak.gain),
        }
        for leak in sorted(null.values(), key=lambda each: (_first(each), each.user, each.text))
    ]
    kinds = [("user", pa.string()), ("words", pa.int64()), ("epsilon", pa.float64()), ("epsilon_sum", pa.float64())]
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def _grouped(name: str, pairs: Iterable[tuple[int, Leak]]) -> pa.Table:
    """Sequences, users and epsilons of each group, in ascending order."""
    groups: dict[int, list[Leak]] = {}
    for key, leak in pairs:
        groups.setdefault(key, []).append(leak)
    rows = [
        {name: key, "sequences": len(each), "users": len({leak.user for leak in each}), **_spread(each)}
        for key, each in sorted(groups.items())
    ]
    whole = [(column, pa.int64()) for column in (name, "sequences", "users")]
    return pa.Table.from_pylist(rows, schema=pa.schema([*whole, *((column, pa.float64()) for column in _SPREAD)]))


_SPREAD = ("epsilon", "epsilon_median", "epsilon_p99", "epsilon_sum")


def _spread(leaks: Iterable[Leak]) -> dict[str, float | None]:
    """The largest epsilon of some sequences, the median, the 99th percentile, and the largest sum."""
    known = [leak for leak in leaks if not math.isnan(leak.gain)]
    if not known:
        return dict.fromkeys(_SPREAD)
    epsilons = [leak.epsilon for leak in known]
    middle, high = np.quantile(epsilons, [0.5, 0.99]).tolist()
    return dict(zip(_SPREAD, (max(epsilons), middle, high, max(leak.gain for leak in known)), strict=True))


def _power(times: int) -> int:
    """The next power of two.

    >>> [_power(times) for times in (1, 2, 3, 9)]
    [1, 2, 4, 16]
    """
    return 1 << (times - 1).bit_length()


def _largest(values: Iterable[float]) -> float | None:
    """The largest number; None if there is none."""
    return max((value for value in values if not math.isnan(value)), default=None)


def _number(value: float) -> float | None:
    """A number as a table has it: null where there is none."""
    return None if math.isnan(value) else value


def _real(value: Any) -> float:
    """A number to sort by; below all where there is none."""
    return -math.inf if value is None else float(value)


def _first(leak: Leak) -> tuple[float, int]:
    """What gives away most comes first."""
    return (-_real(_number(leak.gain)), -leak.words)
