"""The sentences of the guard: in what the audited and the controls differ, and what controls would do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from recollect.results.result import Guard

_NAMES = {
    "records": "records per user",
    "length": "length of records",
    "date": "date",
    "unknown_words": "share of words that nobody else uses",
    "vocabulary": "vocabulary and topic",
    "style": "writing style",
    "labels": "labels",
    "content": "content",
    "separability": "content as a whole, by which a classifier that never saw the model separates them",
}
_CONTROLS = {
    "records": "with as many records each",
    "length": "with records of the same length",
    "date": "of the same period",
    "unknown_words": "who write about the same things",
    "vocabulary": "who write about the same things",
    "style": "of the same source, written and cleaned in the same way",
    "labels": "with the same labels",
    "content": "of the same source",
    "separability": "of the same source",
}


def describe_check(name: str, means: tuple[float, float] | None, *, comparable: bool) -> str:
    """One check as a sentence or two.

    >>> describe_check("length", (5.2, 20.25), comparable=False)
    'The length of records differs (mean 5.2, controls 20.2). Take controls with records of the same length.'
    >>> describe_check("style", None, comparable=True)
    'The writing style does not differ significantly.'

    Args:
        name: The covariate.
        means: Its mean among the audited and among the controls, where that can be told.
        comparable: Whether it speaks against the comparison.
    """
    if name == "separability":
        known = "cannot" if comparable else "can"
        told = f"A classifier that never saw the model {known} separate the audited from the controls."
        return told if comparable else f"{told} Take controls {_CONTROLS[name]}."
    shown = "" if means is None else f" (mean {_show(name, means[0])}, controls {_show(name, means[1])})"
    if comparable:
        return f"The {_NAMES[name]} does not differ significantly{shown}.".replace("records per user does", _MANY)
    sentence = f"The {_NAMES[name]} differs{shown}. Take controls {_CONTROLS[name]}."
    return sentence.replace("records per user differs", "number of records per user differs")


_MANY = "number of records per user does"


def summarise(guard: Guard) -> str:
    """All respects in which two sides are not comparable, and what controls would do."""
    different = [check.name for check in guard.checks if not check.comparable]
    if not different:
        return "The audited and the controls are comparable in all that was compared."
    respects = " and in ".join(_NAMES[name] for name in different)
    wanted = list(dict.fromkeys(_CONTROLS[name] for name in different))
    return f"The audited and the controls differ in {respects}. Take controls {' and '.join(wanted)}."


def _show(name: str, value: float) -> str:
    """A mean as a reader wants it."""
    if name == "date":
        return f"{datetime.fromtimestamp(0, UTC) + timedelta(days=value):%Y-%m-%d}"
    return f"{value:.1%}" if name == "unknown_words" else f"{value:,.1f}"
