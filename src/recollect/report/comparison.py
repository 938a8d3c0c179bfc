"""Two runs side by side, as rows for tables and as one HTML file."""

from __future__ import annotations

from recollect.report.html import environment, guarded
from recollect.results.comparing import Comparison, Difference
from recollect.results.summary import number

HEADINGS = ("audit", "number", "before", "after", "difference", "between", "significant")


def comparison_rows(comparison: Comparison) -> list[list[str]]:
    """One row per finding that both runs have."""
    return [
        [
            each.audit,
            each.name,
            f"{number(each.before)} {each.unit}",
            f"{number(each.after)} {each.unit}",
            f"{each.value:+.3g}",
            "–" if each.interval is None else f"{each.interval[0]:+.3g} and {each.interval[1]:+.3g}",
            {None: "–", True: "yes", False: "no"}[each.differs],
        ]
        for each in comparison.differences
    ]


def comparison_page(comparison: Comparison, names: tuple[str, str]) -> str:
    """The comparison as a page of its own.

    Args:
        comparison: Two runs.
        names: What they are called.
    """
    return guarded(
        environment().get_template("compare.html"),
        comparison=comparison,
        names=names,
        rows=comparison_rows(comparison),
        headline=headline(comparison),
    )


def headline(comparison: Comparison) -> str:
    """How many findings differ, in one sentence."""
    judged = [each for each in comparison.differences if each.differs is not None]
    differing = [each for each in judged if each.differs]
    if not judged:
        return "No finding of both runs has an interval: no difference can be tested."
    said = f"{len(differing)} of {len(judged)} findings differ significantly"
    return f"{said}. {'; '.join(map(_told, differing[:3]))}." if differing else f"{said}."


def _told(each: Difference) -> str:
    """A difference in a few words."""
    return f"{each.name.replace('_', ' ')}: {number(each.before)} → {number(each.after)}"
