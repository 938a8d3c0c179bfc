"""Times of records, all in UTC: ISO 8601, seconds since 1970, or what a table holds; and their calendar periods."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, Final, Literal

import numpy as np

from recollect.checks import check_one_of
from recollect.corpora.readers.faults import Fault, FaultError, describe_type
from recollect.corpora.record import Record

EARLIEST: Final = 100_000_000
"""Smaller numbers are no seconds since 1970: they would be a year, or a date written as 20230101."""


def parse_time(value: Any, column: str) -> datetime | None:
    """The time that a cell holds, in UTC; None if it holds none. A time without a zone is taken for UTC.

    >>> [str(parse_time(value, "time")) for value in ("2023-03-01T12:00:00+02:00", 1677664800)]
    ['2023-03-01 10:00:00+00:00', '2023-03-01 10:00:00+00:00']

    Args:
        value: What the cell holds.
        column: Its column, for messages.

    Raises:
        FaultError: It holds something else.
    """
    if value is None or (isinstance(value, str) and not value.strip()) or _is_missing_time(value):
        return None
    try:
        return _read_time(value)
    except (ValueError, OverflowError, OSError, TypeError):
        raise FaultError(
            Fault(
                "bad_time",
                f"{column!r} is {describe_type(value)} that is neither a date of ISO 8601 (2023-03-01, "
                "2023-03-01T12:00:00Z) nor a number of seconds since 1970.",
            )
        ) from None


def _is_missing_time(value: Any) -> bool:
    """Whether a table means that there is no time: NaN and NaT are unlike themselves."""
    return isinstance(value, float | datetime | np.datetime64) and bool(value != value)  # noqa: PLR0124


def _read_time(value: Any) -> datetime:
    """The time that a cell holds, or an error of Python's."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, str):
        text = value.strip()
        value = (
            datetime.fromisoformat(text) if len(text) == len("20230101") or not _is_numeric_time(text) else float(text)
        )
    if isinstance(value, datetime):
        # a subclass, such as that of pandas, becomes a plain one
        plain = datetime.fromisoformat(value.isoformat()[:32])
        return plain.replace(tzinfo=UTC) if plain.tzinfo is None else plain.astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, bool) or not math.isfinite(value) or value < EARLIEST:
        raise ValueError
    return datetime.fromtimestamp(float(value), UTC)


def _is_numeric_time(text: str) -> bool:
    """Whether a time is written as a number, as all cells of a CSV file are texts."""
    return text.replace(".", "", 1).isdigit()


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
