"""Figures of the leakage audit: users ranked, sequences beside the null, epsilon by repetitions and by length."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.report.figures.blocks import finite, hills
from recollect.report.figures.columns import column
from recollect.report.figures.figure import Figure
from recollect.report.figures.panel import Colour, Panel
from recollect.report.figures.scale import Floats, Scale
from recollect.results.result import Result
from recollect.results.summary import number

PER_WORD = "epsilon, nats per word"
MOST_GROUPS = 12
"""Lengths or numbers of repetitions that have a name each; the rest are drawn and not named."""


def leakage_figures(result: Result, tables: Mapping[str, pa.Table]) -> list[Figure]:
    """What the tables at hand allow to draw; nothing where there is no epsilon."""
    sequences, users = tables.get("sequences"), tables.get("users")
    if sequences is None or users is None or not np.isfinite(_epsilons(sequences)).any():
        return []
    figures = [_ranked(result, users)] if "flagged" in users.column_names else []
    if "chance" in tables:
        figures.append(_beside_null(_epsilons(sequences), _epsilons(tables["chance"])))
    kinds = [("by_times", "times_up_to", "written up to so many times"), ("by_length", "words", "words of a sequence")]
    panels = [_by(tables[name], key, label) for name, key, label in kinds if name in tables and tables[name].num_rows]
    return [*figures, *([_grouped(tuple(panels), tables)] if panels else [])]


def _epsilons(table: pa.Table) -> Floats:
    """The epsilons of a table; none if it has no such column."""
    return column(table, "epsilon") if "epsilon" in table.column_names else np.empty(0)


def _ranked(result: Result, users: pa.Table) -> Figure:
    """The largest epsilon of every user, in descending order."""
    epsilon, named = _epsilons(users), np.array(users.column("flagged").to_pylist(), dtype=bool)
    known = np.isfinite(epsilon)
    order = np.argsort(-epsilon[known], kind="stable")
    values, flagged = epsilon[known][order], named[known][order]
    deniable = result.settings.get("deniable_at")
    level = float(deniable) if isinstance(deniable, int | float) else 1.0
    places = np.arange(1, len(values) + 1)
    panel = Panel(
        Scale.over([0], places, label=f"users of whom something comes out, {len(values):,} of {len(epsilon):,}"),
        Scale.over(values, [0.0, level], label=PER_WORD),
    )
    panel.level(level, f"deniable up to {level:g}")
    groups: dict[Colour, NDArray[np.bool_]] = {"control": ~flagged, "found": flagged}
    for kind, chosen in groups.items():
        told = [f"user {place}: {value:.2f}" for place, value in zip(places[chosen], values[chosen], strict=True)]
        panel.dots(places[chosen], values[chosen], kind, told)
    return Figure(
        title="Users, by the most that is given away of them",
        reading="Each dot is a user: the largest log-ratio of perplexities, reference over model, among the sequences "
        "that nobody else wrote. Above the dashed line the paper holds a leak to be undeniable, though the null "
        "distribution may reach there too. Flagged are users of whom, by the nats of one sequence, more comes out "
        "than expected under the null hypothesis.",
        description=f"{int((values > level).sum()):,} users above {level:g}; {int(flagged.sum()):,} flagged; "
        f"largest epsilon {number(float(values[0]))}.",
        panels=(panel,),
        legend=(("found", "flagged: only training explains it"), ("control", "not flagged")),
    )


def _beside_null(audited: Floats, null: Floats) -> Figure:
    """How the sequences are distributed, beside those that come out where nothing was seen."""
    groups = finite(audited), finite(null)
    names = "sequences of the model", "sequences under the null hypothesis"
    panel = hills(groups, Scale.over(*groups, label=PER_WORD), names=names, height=260)
    beyond = int((groups[0] > groups[1].max()).sum()) if groups[1].size else groups[0].size
    return Figure(
        title="Sequences beside the null distribution",
        reading="Epsilon of the audited users beside its null distribution. It is positive under the null, too, "
        "because only sequences that come out are counted; what lies right of the null distribution is evidence.",
        description=f"{groups[0].size:,} sequences of the model, median {_middle(groups[0])}; {groups[1].size:,} "
        f"under the null hypothesis, median {_middle(groups[1])}. Beyond the null distribution: {beyond:,}.",
        panels=(panel,),
        legend=(("found", "sequences of the model"), ("null", "null distribution")),
    )


def _middle(values: Floats) -> str:
    """The median in words."""
    return number(float(np.median(values))) if values.size else "none"


def _by(table: pa.Table, key: str, label: str) -> Panel:
    """The largest epsilon of each group as a dot, the median as a line."""
    keys, largest, middle = (column(table, name) for name in (key, "epsilon", "epsilon_median"))
    sequences = column(table, "sequences")
    places = np.arange(len(keys)) + 0.5
    every = max(1, -(-len(keys) // MOST_GROUPS))
    named = tuple((float(at), f"{value:.0f}") for at, value in list(zip(places, keys, strict=True))[::every])
    panel = Panel(
        Scale(low=0, high=len(keys), named=named, label=label),
        Scale.over(largest, middle, [0.0], label=PER_WORD),
        width=400,
        height=300,
    )
    known = np.isfinite(largest)
    told = [f"{k:.0f}: {n:.0f} sequences, at most {e:.2f}" for k, n, e in zip(keys, sequences, largest, strict=True)]
    panel.dots(places[known], largest[known], "found", [tip for tip, there in zip(told, known, strict=True) if there])
    panel.means(places[known], middle[known], width=0.6)
    return panel


def _grouped(panels: tuple[Panel, ...], tables: Mapping[str, pa.Table]) -> Figure:
    """Epsilon by repetitions and by length."""
    times = tables.get("by_times")
    said = ""
    if times is not None and times.num_rows:
        pairs = zip(column(times, "times_up_to"), _epsilons(times), strict=True)
        said = "; ".join(f"up to {key:.0f} times: {number(float(value))}" for key, value in pairs if np.isfinite(value))
    return Figure(
        title="Epsilon by repetitions and by length",
        reading="The dot is the largest epsilon of a group, the thick line its median. What a user wrote again and "
        "again is learnt best: where the dots rise to the right, removing repetitions (recollect sanitise) helps.",
        description=f"Largest epsilon of sequences written {said}." if said else "Largest epsilon by length.",
        panels=panels,
        legend=(("found", "largest epsilon"),),
        beside=True,
    )
