"""Figures of the provenance audit: people among calibration users, members among others, frequent and rare words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.report.figures.blocks import compute_bins, draw_roc
from recollect.report.figures.columns import read_column
from recollect.report.figures.figure import Figure
from recollect.report.figures.panel import Colour, Dot, Panel
from recollect.report.figures.scale import Floats, Scale
from recollect.report.figures.summaries import compute_quantile
from recollect.results.result import Result

NEEDED = frozenset({"decision", "score", "p_value", "queries"})
"""Columns without which nothing can be drawn."""
NAMES = 132
"""Room for the names of groups, beside a panel."""
_DECISIONS: Mapping[str, Dot] = {
    "member": "found",
    "no sign": "control",
    "not decided": "apart",
    "unlike the controls": "apart",
}


def draw_provenance_figures(result: Result, tables: Mapping[str, pa.Table]) -> list[Figure]:
    """The figures of provenance that the tables at hand allow to draw."""
    if not {"users", "calibration"} <= tables.keys() or not {*tables["users"].column_names} >= NEEDED:
        return []
    users, controls = tables["users"], read_column(tables["calibration"], "score")
    controls = controls[np.isfinite(controls)]
    alpha = result.settings.get("alpha")
    figures = []
    if controls.size and _select_tested_people(users).any():
        threshold = find_threshold(controls, alpha) if isinstance(alpha, float) else None
        figures.append(_draw_among_controls(users, controls, threshold))
    if "roc" in tables and (curve := draw_roc(tables["roc"])) is not None:
        # scores of people who are not comparable say as little by a curve as by p-values
        figures.append(replace(curve, reveals=(*curve.reveals, "lowest_p_corrected")))
    return figures + ([_draw_ranks(users, tables["frequency"])] if _has_ranks(tables) else [])


def find_threshold(controls: Floats, alpha: float) -> float | None:
    """For the figure of provenance: the score to exceed for a p-value of at most alpha; None with too few users.

    >>> [find_threshold(np.arange(count), 0.05) for count in (19.0, 39.0, 9.0)]
    [18.0, 37.0, None]
    """
    allowed = int(alpha * (len(controls) + 1) + 1e-9)
    return float(np.sort(controls)[-allowed]) if allowed else None


def _draw_among_controls(users: pa.Table, controls: Floats, threshold: float | None) -> Figure:
    """A figure of provenance: the distribution of calibration users, and beneath it the audited people."""
    score, queries = read_column(users, "score"), read_column(users, "queries")
    # calibration users are kept as they score from so many texts; fewer texts scatter otherwise
    tested = _select_tested_people(users)
    drawn = tested & (queries == queries[tested].max())
    decision = np.array(users.column("decision").to_pylist(), dtype=object)
    groups: dict[str, NDArray[np.bool_]] = {name: drawn & (decision == name) for name in _DECISIONS}
    groups = {name: chosen for name, chosen in groups.items() if chosen.any()}
    x = Scale.over(controls, score[drawn], label="score (right: more evidence of training)")
    edges = compute_bins(controls, x)
    counts = np.histogram(controls, edges)[0]
    y = Scale.over(counts, label="calibration users", zero=True)
    histogram = Panel(Scale(low=x.low, high=x.high), y, height=210, left=NAMES)
    histogram.draw_bars(edges, counts, "null", of="calibration users")
    names = tuple((index + 0.5, name) for index, name in enumerate(groups))
    strips = Panel(x, Scale(low=0, high=len(groups), named=names), height=64 + 24 * len(groups), left=NAMES)
    p = read_column(users, "p_value")
    for (height, name), chosen in zip(names, groups.values(), strict=True):
        tips = [f"score {s:.3g}, p = {q:.3g}" for s, q in zip(score[chosen], p[chosen], strict=True)]
        strips.draw_dots(score[chosen], np.full(chosen.sum(), height), _DECISIONS[name], tips)
    if threshold is not None:
        histogram.draw_threshold(threshold, "threshold for one person")
    left_out = int(np.isfinite(score).sum() - drawn.sum())
    return Figure(
        title="People among calibration users",
        reading="The histogram shows calibration users, known not to be in the training set: the null distribution. "
        "Each dot is an audited person; one to the right of the histogram is predicted better than expected under the "
        "null hypothesis. Where many people are audited, the threshold is further to the right than drawn.",
        description=_describe_people_figure(groups, controls, threshold, left_out),
        panels=(histogram, strips),
        legend=(("null", "calibration users"), *((_DECISIONS[name], f"people: {name}") for name in groups)),
        reveals=("users_found", "lowest_p_corrected"),
    )


def _select_tested_people(users: pa.Table) -> NDArray[np.bool_]:
    """The people in the figure of provenance: those with enough text to decide."""
    decided = [decision in _DECISIONS for decision in users.column("decision").to_pylist()]
    return np.asarray(np.isfinite(read_column(users, "score")) & np.array(decided), dtype=np.bool_)


def _describe_people_figure(
    groups: Mapping[str, NDArray[np.bool_]], controls: Floats, threshold: float | None, left_out: int
) -> str:
    """What the provenance figure of people among calibration users shows."""
    summary = (
        f"Histogram of the scores of {controls.size:,} calibration users, median {compute_quantile(controls, 0.5):.3g}"
    )
    summary += "." if threshold is None else f"; the threshold for one person is {threshold:.3g}."
    summary += " People: " + ", ".join(f"{int(chosen.sum())} {name}" for name, chosen in groups.items()) + "."
    return summary + (f" {left_out} people with fewer texts are not drawn." if left_out else "")


def _has_ranks(tables: Mapping[str, pa.Table]) -> bool:
    """Whether provenance has ranks of frequent and rare words to compare, in two bands at least."""
    if "frequency" not in tables:
        return False
    ranks = [read_column(tables["frequency"], name) for name in ("rank", "calibration_rank")]
    return bool(np.isfinite(ranks).all(axis=0).sum() > 1)


def _draw_ranks(users: pa.Table, table: pa.Table) -> Figure:
    """A figure of provenance: median ranks by how often others write a word."""
    written = read_column(table, "written")
    own, null = read_column(table, "rank"), read_column(table, "calibration_rank")
    positions = np.arange(len(written), dtype=np.float64)
    names = tuple((float(at), _format_band(count)) for at, count in zip(positions, written, strict=True))
    x = Scale(low=-0.4, high=len(names) - 0.6, label="how often the shadows' users wrote the word", named=names)
    highest = 10 ** np.ceil(np.log10(np.nanmax([own, null])) + 0.01)
    panel = Panel(x, Scale(low=1.0, high=float(highest), label="median rank, 1 is the first guess", log=True))
    who = "people found" if "member" in users.column("decision").to_pylist() else "audited people"
    lines: tuple[tuple[Floats, Colour, str], ...] = ((null, "null", "calibration users"), (own, "found", who))
    for ranks, kind, whose in lines:
        shown = np.isfinite(ranks)
        panel.draw_line(positions[shown], ranks[shown], kind)
        panel.draw_dots(positions[shown], ranks[shown], kind, [f"{whose}: rank {each:,.0f}" for each in ranks[shown]])
    return Figure(
        title="Frequent and rare words",
        reading="Frequent words are easy for any model. Where the lower line leaves the upper one, at rare words, the "
        "target places these people's words better than those of people it has not seen: that is memorisation.",
        description=_describe_ranks_figure(who, names, own, null),
        panels=(panel,),
        legend=(("found", who), ("null", "calibration users")),
        reveals=("users_found", "lowest_p_corrected"),
    )


def _format_band(written: float) -> str:
    """A band of word counts in the words of a provenance figure."""
    return f"{written:,.0f} or more" if written else "never, or unknown"


def _describe_ranks_figure(who: str, names: tuple[tuple[float, str], ...], own: Floats, null: Floats) -> str:
    """What the provenance figure of ranks of frequent and rare words shows."""
    clauses = [
        f"written {name}: {_format_rank(own_rank)} and {_format_rank(null_rank)}"
        for (_, name), own_rank, null_rank in zip(names, own, null, strict=True)
    ]
    return f"Median rank of words of {who} and of calibration users; {'; '.join(clauses)}."


def _format_rank(value: float) -> str:
    """A median rank in a provenance figure, in words."""
    return f"{value:,.0f}" if np.isfinite(value) else "not shown"
