"""Two runs side by side, as rows for tables and as one HTML file."""

from __future__ import annotations

from recollect.report.html import build_environment, render_guarded
from recollect.results.comparison import Comparison, Difference
from recollect.results.summary_rows import format_number, state_p

HEADINGS = ("audit", "number", "before", "after", "difference", "significant")


def build_comparison_rows(comparison: Comparison) -> list[list[str]]:
    """One row per finding that both runs have."""
    return [
        [
            each.audit,
            _name_with_unit(each),
            format_number(each.before),
            format_number(each.after),
            f"{each.value:+.3g}"
            + ("" if each.interval is None else f" ({each.interval[0]:+.3g} to {each.interval[1]:+.3g})"),
            _describe_significance(each),
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


def _name_with_unit(each: Difference) -> str:
    """The name of a finding on the comparison page in words, with its unit unless the name says it."""
    obvious = each.unit in ("probability", "share", *each.name.split("_"))
    return each.name.replace("_", " ") + ("" if obvious else f", {each.unit}")


def _describe_significance(each: Difference) -> str:
    """Whether a difference on the comparison page is significant, with its corrected p-value."""
    if each.p_corrected is None:
        return "–"
    return f"{'yes' if each.differs else 'no'} ({state_p(each.p_corrected)})"


def _describe_difference(each: Difference) -> str:
    """A difference on the comparison page in a few words."""
    return f"{each.name.replace('_', ' ')}: {format_number(each.before)} → {format_number(each.after)}"
