"""Figures of the leakage audit: users ranked, sequences beside the null, epsilon by repetitions and by length."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.report.figures.blocks import draw_overlaid_histograms, select_drawable
from recollect.report.figures.columns import read_column
from recollect.report.figures.figure import Figure
from recollect.report.figures.panel import Colour, Panel
from recollect.report.figures.scale import Floats, Scale
from recollect.report.figures.summaries import compute_quantile
from recollect.results.result import Result
from recollect.results.summary_rows import format_number

PER_WORD = "epsilon, nats per word"
MAX_GROUPS = 12
"""Lengths or numbers of repetitions that have a name each; the rest are drawn and not named."""


def draw_leakage_figures(result: Result, tables: Mapping[str, pa.Table]) -> list[Figure]:
    """The figures of leakage that the tables at hand allow to draw; nothing where there is no epsilon."""
    sequences, users = tables.get("sequences"), tables.get("users")
    if sequences is None or users is None or not np.isfinite(_read_epsilons(sequences)).any():
        return []
    figures = [_draw_ranked_users(result, users)] if "flagged" in users.column_names else []
    if "null" in tables:
        figures.append(_draw_beside_null(_read_epsilons(sequences), _read_epsilons(tables["null"])))
    kinds = [("by_times", "times_up_to", "written up to so many times"), ("by_length", "words", "words of a sequence")]
    panels = [
        _draw_epsilon_groups(tables[name], key, label)
        for name, key, label in kinds
        if name in tables and tables[name].num_rows
    ]
    return [*figures, *([_build_grouped_figure(tuple(panels), tables)] if panels else [])]


def _read_epsilons(table: pa.Table) -> Floats:
    """The leakage epsilons of a table; none if it has no such column."""
    return read_column(table, "epsilon") if "epsilon" in table.column_names else np.empty(0)


def _draw_ranked_users(result: Result, users: pa.Table) -> Figure:
    """A figure of leakage: the largest epsilon of every user, in descending order."""
    epsilon, named = _read_epsilons(users), np.array(users.column("flagged").to_pylist(), dtype=bool)
    known = np.isfinite(epsilon)
    order = np.argsort(-epsilon[known], kind="stable")
    values, flagged = epsilon[known][order], named[known][order]
    deniable = result.settings.get("deniable_at")
    level = float(deniable) if isinstance(deniable, int | float) else 1.0
    positions = np.arange(1, len(values) + 1)
    panel = Panel(
        Scale.over([0], positions, label=f"users with a reproduced sequence, {len(values):,} of {len(epsilon):,}"),
        Scale.over(values, [0.0, level], label=PER_WORD),
    )
    panel.draw_level(level, f"deniable up to {level:g}")
    groups: dict[Colour, NDArray[np.bool_]] = {"control": ~flagged, "found": flagged}
    for kind, chosen in groups.items():
        tips = [
            f"user {position}: {value:.2f}" for position, value in zip(positions[chosen], values[chosen], strict=True)
        ]
        panel.draw_dots(positions[chosen], values[chosen], kind, tips)
    return Figure(
        title="Users, by their largest leak",
        reading="Each dot is a user: the largest log-ratio of perplexities, reference over model, among the sequences "
        "that nobody else wrote. Above the dashed line the paper holds a leak to be undeniable, though the null "
        "distribution may reach there too. Flagged are users of whom, by the nats of one sequence, more comes out "
        "than expected under the null hypothesis.",
        description=f"{int((values > level).sum()):,} users above {level:g}; {int(flagged.sum()):,} flagged; "
        f"largest epsilon {format_number(float(values[0]))}.",
        panels=(panel,),
        legend=(("found", "flagged: training on others does not explain it"), ("control", "not flagged")),
        reveals=("flagged_users",),
    )


def _draw_beside_null(audited: Floats, null: Floats) -> Figure:
    """A figure of leakage: the distribution of sequences, beside those under the null hypothesis."""
    groups = select_drawable(audited), select_drawable(null)
    names = "sequences of the model", "sequences under the null hypothesis"
    panel = draw_overlaid_histograms(groups, Scale.over(*groups, label=PER_WORD), names=names, height=260)
    beyond = int((groups[0] > groups[1].max()).sum()) if groups[1].size else groups[0].size
    return Figure(
        title="Sequences beside the null distribution",
        reading="Epsilon of the audited users beside its null distribution. It is positive under the null, too, "
        "because only sequences that are reproduced are counted; what exceeds the null distribution is evidence.",
        description=f"{groups[0].size:,} sequences of the model, median {_format_median_epsilon(groups[0])}; "
        f"{groups[1].size:,} under the null hypothesis, median {_format_median_epsilon(groups[1])}. "
        f"Beyond the null distribution: {beyond:,}.",
        panels=(panel,),
        legend=(("found", "sequences of the model"), ("null", "null distribution")),
        reveals=("leakage_excess", "leakage_p", "leakage_epsilon_null", "leakage_epsilon_excess"),
    )


def _format_median_epsilon(values: Floats) -> str:
    """The median leakage epsilon in words."""
    return format_number(compute_quantile(values, 0.5)) if values.size else "none"


def _draw_epsilon_groups(table: pa.Table, key: str, label: str) -> Panel:
    """A panel of leakage: the largest epsilon of each group as a dot, the median as a line."""
    keys, largest, middle = (read_column(table, name) for name in (key, "epsilon", "epsilon_median"))
    sequences = read_column(table, "sequences")
    positions = np.arange(len(keys)) + 0.5
    every = max(1, -(-len(keys) // MAX_GROUPS))
    named = tuple((float(at), f"{value:.0f}") for at, value in list(zip(positions, keys, strict=True))[::every])
    panel = Panel(
        Scale(low=0, high=len(keys), named=named, label=label),
        Scale.over(largest, middle, [0.0], label=PER_WORD),
        width=500,
        height=320,
    )
    known = np.isfinite(largest)
    tips = [f"{k:.0f}: {n:.0f} sequences, at most {e:.2f}" for k, n, e in zip(keys, sequences, largest, strict=True)]
    panel.draw_dots(
        positions[known], largest[known], "found", [tip for tip, is_known in zip(tips, known, strict=True) if is_known]
    )
    panel.draw_means(positions[known], middle[known], width=0.6)
    return panel


def _build_grouped_figure(panels: tuple[Panel, ...], tables: Mapping[str, pa.Table]) -> Figure:
    """A figure of leakage: epsilon by repetitions and by length."""
    times = tables.get("by_times")
    summary = ""
    if times is not None and times.num_rows:
        pairs = zip(read_column(times, "times_up_to"), _read_epsilons(times), strict=True)
        summary = "; ".join(
            f"up to {key:.0f} times: {format_number(float(value))}" for key, value in pairs if np.isfinite(value)
        )
    return Figure(
        title="Epsilon by repetitions and by length",
        reading="The dot is the largest epsilon of a group, the thick line its median. What a user wrote again and "
        "again is learnt best: where the dots rise to the right, removing repetitions (recollect sanitise) helps.",
        description=f"Largest epsilon of sequences written {summary}." if summary else "Largest epsilon by length.",
        panels=panels,
        legend=(("found", "largest epsilon"),),
        beside=True,
    )
