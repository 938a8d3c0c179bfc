"""The sentences of the guard: in what the audited and the controls differ, and what controls would do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from recollect.results.result import Guard


@dataclass(frozen=True, kw_only=True)
class _Respect:
    """One respect in which two sides are compared."""

    name: str
    controls: str
    """Which controls would do."""


Sides = tuple[str, str]
AUDITED_AND_CONTROLS: Sides = ("audited", "controls")
MEMBERS_AND_NON_MEMBERS: Sides = ("members", "non-members")
RESPECTS = {
    "records": _Respect(name="records per user", controls="with as many records each"),
    "length": _Respect(name="length of records", controls="with records of the same length"),
    "date": _Respect(name="dates", controls="of the same period"),
    "unknown_words": _Respect(name="words that nobody else uses", controls="who write about the same things"),
    "repetition": _Respect(name="how much a user repeats", controls="who repeat themselves as much"),
    "vocabulary": _Respect(name="vocabulary and topic", controls="who write about the same things"),
    "style": _Respect(name="writing style", controls="of the same source, written and cleaned in the same way"),
    "labels": _Respect(name="labels", controls="with the same labels"),
    "content": _Respect(name="content", controls="of the same source"),
    "separability": _Respect(name="what a classifier sees in the texts", controls="of the same source"),
}


def describe_check(name: str, means: tuple[float, float] | None, sides: Sides, *, comparable: bool) -> str:
    """One check of the guard as a sentence or two.

    >>> describe_check("date", (19418.0, 19477.0), ("audited", "controls"), comparable=False)
    'Significant difference in dates (mean 2023-03-02, controls 2023-04-30). Take controls of the same period.'
    >>> describe_check("style", None, ("audited", "controls"), comparable=True)
    'No significant difference in writing style.'

    Args:
        name: The covariate.
        means: Its mean on both sides, where that can be told.
        sides: What the two sides are called.
        comparable: Whether it speaks against the comparison.
    """
    respect = RESPECTS[name]
    shown = (
        ""
        if means is None
        else f" (mean {_format_guard_mean(name, means[0])}, {sides[1]} {_format_guard_mean(name, means[1])})"
    )
    if comparable:
        return f"No significant difference in {respect.name}{shown}."
    return f"Significant difference in {respect.name}{shown}. Take {sides[1]} {respect.controls}."


def summarise_guard(guard: Guard, sides: Sides) -> str:
    """In words: all respects in which the guard finds two sides not comparable, and what controls would do."""
    both = f"The {sides[0]} and the {sides[1]}"
    names = [check.name for check in guard.checks if not check.comparable]
    if not names:
        return f"{both} are comparable in all that was compared."
    # what a classifier sees is one of the others, unless it is the only one
    different = [RESPECTS[name] for name in names if name != "separability"] or [RESPECTS["separability"]]
    wanted = list(dict.fromkeys(each.controls for each in different))
    respects = _enumerate_respects([each.name for each in different])
    return f"{both} differ in {respects}. Take {sides[1]} {_enumerate_respects(wanted)}."


def explain_missing_times(dated: tuple[float, float], sides: Sides) -> str:
    """In words: why the guard did not compare all periods, and what to do.

    >>> explain_missing_times((0.0, 1.0), AUDITED_AND_CONTROLS)[:72]
    'Times are missing for 100 % of the records of the audited, and for 0 % o'

    Args:
        dated: The share of the records of each side that have a time.
        sides: What the two sides are called.
    """
    if not any(dated):
        return (
            "Times are not known on both sides, so that the periods in which records were written were not compared; a "
            "time column (--time-column, time_column=) would let them be."
        )
    missing = [
        f"for {100 * (1 - share):.0f} % of the records of the {side}" for share, side in zip(dated, sides, strict=True)
    ]
    compared = "compared only as far as they are known" if all(dated) else "not compared"
    return (
        f"Times are missing {missing[0]}, and {missing[1]}: for that reason the periods in which records were written "
        f"were {compared}, and a difference of periods might be taken for memorisation. Give times for both sides "
        "(--time-column, time_column=), or leave out records without one."
    )


def _enumerate_respects(words: list[str]) -> str:
    """The respects of the guard as a list in a sentence."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _format_guard_mean(name: str, value: float) -> str:
    """A mean in a sentence of the guard."""
    if name == "date":
        return f"{datetime.fromtimestamp(0, UTC) + timedelta(days=value):%Y-%m-%d}"
    return f"{value:.1%}" if name in ("unknown_words", "repetition") else f"{value:,.1f}"
