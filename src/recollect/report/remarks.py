"""What must be known beside the numbers of a result, in words: warnings, notes, and the checks that were made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from recollect.report.questions import Light
from recollect.report.words import Naming, get_own_id, render_sentence
from recollect.results.result import Guard, LimitCheck, Placebo, Power, Result
from recollect.results.summary_rows import (
    describe_count,
    format_number,
    format_span,
    format_value,
    group_withheld,
    title_name,
)

REASONS: Final = {
    "explained_by_texts": "A classifier that never saw the model separates the audited from the controls as well as "
    "the model's scores do.",
    "no_power": "The data are too few, or too alike, to decide either way.",
    "not_comparable": "The audited records and the controls are not comparable.",
    "placebo_failed": "The audit accuses held-out controls as well.",
    "target_damaged": "The target model is damaged as a whole.",
    "difficulty_differs": "The audited records are easier or harder than the controls like them.",
}
"""Why an outcome is inconclusive, by its code; any other code is shown in its own words."""
LIMITS: Final = {
    "kept": Light(colour="green", words="Pass"),
    "exceeded": Light(colour="red", words="Fail"),
    "not_checked": Light(colour="amber", words="Not checked"),
}
COMPARABLE: Final = {
    True: Light(colour="green", words="Comparable"),
    False: Light(colour="amber", words="Not comparable"),
}


@dataclass(frozen=True, kw_only=True)
class Remark:
    """Something that must be known beside the numbers."""

    title: str
    text: str
    warning: bool = False
    """Whether nobody should read on without it."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A short table of checks."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str | Light, ...], ...]


def build_remarks(result: Result, missing: tuple[str, ...] = (), naming: Naming = get_own_id) -> tuple[Remark, ...]:
    """All that must be known beside the numbers, the gravest first.

    Args:
        result: What the audit found.
        missing: What cannot be shown, and why.
        naming: How people and records are called.
    """
    return (
        *(Remark(title="Failed.", text=each.error, warning=True) for each in result.failed),
        *_explain_outcome(result),
        *_describe_guard(result.guard),
        *_describe_placebo(result.placebo),
        *(
            Remark(title=f"Withheld: {each.names} ({describe_count(each.code)}).", text=each.reason, warning=True)
            for each in group_withheld(result)
        ),
        *(
            Remark(title=f"Skipped: {title_name(each.finding or each.audit)}.", text=each.reason, warning=True)
            for each in result.skipped
        ),
        *(Remark(title="Something is missing.", text=words, warning=True) for words in missing),
        *_describe_power(result.power),
        *(Remark(title="Note.", text=render_sentence(note.text, naming)) for note in result.notes),
        *(Remark(title="Left out:", text=f"{n:,} ({describe_count(why)})") for why, n in result.dropped.items()),
    )


def build_listings(result: Result) -> tuple[Listing, ...]:
    """Remarks as short tables: the limits that were set, and whether the controls are comparable."""
    limits = Listing(
        caption="Limits that were set",
        headings=("Limit", "Pass or fail", "Value", "Why not checked"),
        rows=tuple(
            (each.limit, LIMITS[each.status], _format_optional_remark(each.value), each.reason or "–")
            for each in result.limits
        ),
    )
    compared = Listing(
        caption="" if result.guard is None else "The {} beside the {}".format(*result.guard.sides),
        headings=("Compared by", "Comparable", "p", "Effect (standard deviations)", "What it means"),
        rows=tuple(
            (
                describe_count(each.name),
                COMPARABLE[each.comparable],
                _format_optional_remark(each.p_value),
                _format_optional_remark(each.effect),
                each.text,
            )
            for each in (() if result.guard is None else result.guard.checks)
        ),
    )
    return tuple(listing for listing in (limits, compared) if listing.rows)


def describe_limit(limit: LimitCheck) -> str:
    """The remark on a limit that was not kept, in one sentence.

    >>> describe_limit(LimitCheck(limit="auc>0.6", status="exceeded", value=0.71))
    'the limit auc>0.6 was exceeded: 0.71.'
    """
    if limit.status == "not_checked":
        return f"the limit {limit.limit} could not be checked: {limit.reason or 'no reason is given.'}"
    return f"the limit {limit.limit} was {limit.status}: {_format_optional_remark(limit.value)}."


def _explain_outcome(result: Result) -> Iterator[Remark]:
    """A remark on why there is no answer."""
    if result.outcome_code is not None:
        own = f"{describe_count(result.outcome_code).capitalize()}."
        yield Remark(title="Why it is inconclusive.", text=REASONS.get(result.outcome_code, own))


def _describe_guard(guard: Guard | None) -> Iterator[Remark]:
    """The remark on whether the two sides that were compared are comparable."""
    if guard is None:
        return
    if guard.comparable:
        yield Remark(title="Comparable.", text="No check distinguishes the {} from the {}.".format(*guard.sides))
    else:
        text = "The {} differ from the {}, independently of any model.".format(*guard.sides)
        yield Remark(title="Not comparable.", text=text, warning=True)


def _describe_placebo(placebo: Placebo | None) -> Iterator[Remark]:
    """A remark on the placebo's false positive rate: controls audited in place of the audited records."""
    if placebo is None:
        return
    sentences = list[str]()
    if placebo.false_positive_rate is not None:
        low_high = "" if placebo.interval is None else f" ({format_span(*placebo.interval, 'share')})"
        sentences.append(
            f"The audit of controls, which are non-members, gave a finding in "
            f"{format_value(placebo.false_positive_rate, 'share')}{low_high} of {placebo.runs:,} runs."
        )
    if placebo.reason is not None:
        sentences.append(placebo.reason)
    status = {"passed": "passed", "failed": "failed", "not_run": "not run"}[placebo.status]
    yield Remark(title=f"Placebo test {status}.", text=" ".join(sentences), warning=placebo.status == "failed")


def _describe_power(power: Power | None) -> Iterator[Remark]:
    """The remark on what this design could have found at all."""
    if power is None:
        return
    sentences = list[str]()
    if power.smallest_p is not None:
        sentences.append(f"The smallest p-value that this design can give is {format_number(power.smallest_p)}.")
    if power.minimum_detectable_effect is not None:
        unit = f" {power.effect_unit}" if power.effect_unit else ""
        sentences.append(
            f"The smallest effect that it can detect is {format_number(power.minimum_detectable_effect)}{unit}."
        )
    if power.needed:
        sentences.append(f"Needed: {', '.join(f'{n:,} {describe_count(name)}' for name, n in power.needed.items())}.")
    if sentences:
        yield Remark(title="Power.", text=" ".join(sentences))


def _format_optional_remark(value: float | None) -> str:
    """A number in a remark, or a dash for none."""
    return "–" if value is None else format_number(value)
