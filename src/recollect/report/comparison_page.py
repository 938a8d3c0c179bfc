"""Two runs side by side, as rows for tables and as one HTML file."""

from __future__ import annotations

from recollect.report.html import build_environment, render_guarded
from recollect.results.comparison import Comparison, Difference
from recollect.results.summary_rows import format_number

HEADINGS = ("audit", "number", "before", "after", "difference", "between", "significant")


def build_comparison_rows(comparison: Comparison) -> list[list[str]]:
    """One row per finding that both runs have."""
    return [
        [
            each.audit,
            each.name,
            f"{format_number(each.before)} {each.unit}",
            f"{format_number(each.after)} {each.unit}",
            f"{each.value:+.3g}",
            "–" if each.interval is None else f"{each.interval[0]:+.3g} and {each.interval[1]:+.3g}",
            {None: "–", True: "yes", False: "no"}[each.differs],
        ]
        for each in comparison.differences
    ]


def render_comparison_page(comparison: Comparison, names: tuple[str, str]) -> str:
    """The comparison as a page of its own.

    Args:
        comparison: Two runs.
        names: What they are called.
    """
    return render_guarded(
        build_environment().get_template("compare.html"),
        comparison=comparison,
        names=names,
        rows=build_comparison_rows(comparison),
        headline=build_comparison_headline(comparison),
    )


def build_comparison_headline(comparison: Comparison) -> str:
    """How many findings of a comparison differ, in one sentence."""
    tested = [each for each in comparison.differences if each.differs is not None]
    differing = [each for each in tested if each.differs]
    if not tested:
        return "No finding of both runs has an interval: no difference can be tested."
    summary = f"{len(differing)} of {len(tested)} findings differ significantly"
    return f"{summary}. {'; '.join(map(_describe_difference, differing[:3]))}." if differing else f"{summary}."


def _describe_difference(each: Difference) -> str:
    """A difference on the comparison page in a few words."""
    return f"{each.name.replace('_', ' ')}: {format_number(each.before)} → {format_number(each.after)}"
