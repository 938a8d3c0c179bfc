"""From a row of columns to a record, or to the fault that is in its way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from recollect.corpora.messages import is_list_of_turns, parse_messages, parse_prompt_and_completion
from recollect.corpora.readers.columns import Layout
from recollect.corpora.readers.faults import Fault, FaultError, describe_type, list_column_names
from recollect.corpora.record import Record
from recollect.corpora.times import parse_time

Row = Mapping[str, Any]
Check = Callable[[Any, str], Any]


class RowParser:
    """Makes records of one layout.

    A class and not a function, so that what is the same for every row is worked out once.
    """

    def __init__(self, layout: Layout) -> None:
        label: Check = _parse_integer_label if layout.integer_labels else _parse_name_label
        wanted: list[tuple[str, str | None, Check]] = [
            ("id", layout.id, partial(parse_key, reason="no_id")),
            ("user", layout.user, partial(parse_key, reason="no_user")),
            ("text", layout.text, _parse_text),
            ("source", layout.source, _parse_text_or_turns),
            ("target", layout.target, _parse_text_or_turns),
            ("array", layout.array, _parse_array),
            ("label", layout.label, label),
            ("messages", layout.messages, partial(parse_messages, scored_roles=layout.scored_roles)),
        ]
        # a plain string is looked up quicker than the subclass that marks a default
        self._checks = [(field, str(column), check) for field, column, check in wanted if column is not None]
        self._absent = layout.absent
        self._time, self._extra = layout.time, layout.extra
        self._pair = (str(layout.source), str(layout.target)) if layout.source and layout.target else None

    def __call__(self, row: Row, default_id: str) -> Record | Fault:
        """The record of a row, or what is wrong with it."""
        fields: dict[str, Any] = {"id": default_id}
        try:
            for field, column, check in self._checks:
                if column not in row:
                    return _build_missing_fault(field, column, row)
                fields[field] = check(row[column], column)
            if self._pair is not None and type(fields["target"]) is not str:
                fields["messages"] = parse_prompt_and_completion(fields.pop("source"), fields.pop("target"), self._pair)
            if self._time is not None:
                fields["time"] = parse_time(row.get(self._time), self._time)
        except FaultError as error:
            return error.fault
        if not self._absent.isdisjoint(row):
            return build_late_column_fault(min(self._absent.intersection(row)))
        if self._extra is not None:
            fields["extra"] = row.get(self._extra)
        return Record.from_fields(fields)


def _build_missing_fault(field: str, column: str, row: Row) -> Fault:
    """The fault of a row without one of the columns."""
    reason = f"no_{field}" if field in ("id", "user", "label") else "no_text"
    return Fault(reason, f"the column {column!r} is missing; it has: {list_column_names(map(str, row))}.")


def build_late_column_fault(name: str) -> Fault:
    """The fault of a column that only turns up in later rows."""
    return Fault(
        "late_column",
        f"here is a column {name!r} that the first records do not have.",
        do=f"Name it as an option (--user-column, --id-column or --label-column {name}) to make it part of every "
        "record, or rename it.",
        fatal=True,
    )


def _build_fault_error(reason: str, found: str) -> FaultError:
    """An exception that carries the fault of a row."""
    return FaultError(Fault(reason, found))


def _find_null(value: Any, column: str, reason: str) -> FaultError | None:
    """What is wrong with a value of a row that is null or empty; None if it is neither."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return _build_fault_error(reason, f"{column!r} is null.")
    if isinstance(value, str) and (not value or value.isspace()):
        return _build_fault_error(reason, f"{column!r} is empty.")
    return None


def _parse_text(value: Any, column: str) -> str:
    """A text: a string with something in it."""
    if type(value) is str and value and "\x00" not in value and not value.isspace():
        return value
    raise _explain_bad_string(value, column, "no_text")


def _parse_text_or_turns(value: Any, column: str) -> Any:
    """A text; of conversational data sets the turns of a prompt or completion, as they are."""
    return value if is_list_of_turns(value) else _parse_text(value, column)


def _explain_bad_string(value: Any, column: str, reason: str) -> FaultError:
    """What is wrong with a value of a row that is no usable string."""
    nothing = _find_null(value, column, reason)
    if nothing:
        return nothing
    if isinstance(value, str):
        return _build_fault_error(
            "nul_character", f"{column!r} holds a NUL character at position {value.index(chr(0))}."
        )
    return _build_fault_error("wrong_type", f"{column!r} is {describe_type(value)}, where a string is needed.")


def parse_key(value: Any, column: str, reason: str) -> str:
    """The id or the user of a row as a string: a name, or a number as its digits."""
    if type(value) is str and value and "\x00" not in value and not value.isspace():
        return value
    if isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value):
        return str(int(value)) if value == int(value) else repr(float(value))
    raise _explain_bad_string(value, column, reason)


def _parse_integer_label(value: Any, column: str) -> int:
    """A label in a corpus whose labels are whole numbers."""
    if type(value) is int:
        return value
    integer = parse_integer(value)
    if integer is None:
        raise _find_null(value, column, "no_label") or _build_fault_error(
            "wrong_type", f"{column!r} is {describe_type(value)} that is no whole number, as the first labels are."
        )
    return integer


def parse_integer(label: Any) -> int | None:
    """The label of a row as a whole number: also a truth value, or the digits of a CSV file.

    >>> parse_integer("12"), parse_integer(True), parse_integer("007"), parse_integer("cat")
    (12, 1, None, None)
    """
    if isinstance(label, int | np.integer | np.bool_):
        return int(label)
    if isinstance(label, str) and len(label) < 19 and label.isascii() and label.lstrip("-").isdigit():
        return int(label) if str(int(label)) == label else None
    return None


def _parse_name_label(value: Any, column: str) -> str:
    """A label in a corpus whose labels are names."""
    if type(value) is str and value and "\x00" not in value and not value.isspace():
        return value
    if parse_integer(value) is not None:
        return str(value)
    raise _explain_bad_string(value, column, "no_label")


def _parse_array(value: Any, column: str) -> Any:
    """The array of a row, of finite numbers."""
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        raise _build_fault_error("not_finite", f"{column!r} holds a number that is not finite.")
    return value
