"""Calendar periods: in which week, month or quarter a record was written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Literal

from recollect.checks import check_one_of
from recollect.corpora.record import Record

Period = Literal["week", "month", "quarter"]

_NAMES: Final[dict[str, Callable[[datetime], str]]] = {
    "week": lambda time: "{}-W{:02}".format(*time.isocalendar()[:2]),
    "month": lambda time: f"{time.year}-{time.month:02}",
    "quarter": lambda time: f"{time.year}-Q{(time.month + 2) // 3}",
}


def period_of(record: Record, period: Period = "month") -> str | None:
    """The calendar period in which a record was written, in UTC; None if its time is unknown.

    >>> record = Record(id="1", text="Happy new year!", time=datetime(2026, 1, 1, tzinfo=UTC))
    >>> period_of(record), period_of(record, "week"), period_of(record, "quarter")
    ('2026-01', '2026-W01', '2026-Q1')

    Args:
        record: The record.
        period: `week` (of ISO 8601), `month` or `quarter`.
    """
    check_one_of(tuple(_NAMES), period=period)
    if record.time is None:
        return None
    return _NAMES[period](record.time.astimezone(UTC) if record.time.tzinfo else record.time)
