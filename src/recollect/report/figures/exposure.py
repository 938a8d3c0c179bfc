"""Figures of the exposure audit: secrets among random ones, exposure by repetitions, and the paper's curve."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.report.figures.blocks import compute_bins
from recollect.report.figures.columns import group_by_repetitions, read_column
from recollect.report.figures.exposure_history import draw_exposure_by_epoch
from recollect.report.figures.figure import Figure
from recollect.report.figures.panel import Colour, Panel
from recollect.report.figures.scale import Floats, Scale
from recollect.results.result import Result

NULL_MEAN = 1 / math.log(2)
"""The exposure that a secret which was never trained on has on average, in bits."""
NEEDED = frozenset({"planted", "exposure_bits", "lower", "upper", "space", "log_perplexity_bits"})
"""Columns without which nothing can be drawn."""
NAMES = 104
"""Room for the names of groups, beside a panel."""


def draw_exposure_figures(result: Result, tables: Mapping[str, pa.Table]) -> list[Figure]:
    """What the tables at hand allow to draw."""
    if "secrets" not in tables or not tables["secrets"].num_rows or not {*tables["secrets"].column_names} >= NEEDED:
        return []
    secrets = {
        name: read_column(tables["secrets"], name) for name in tables["secrets"].column_names if name != "secret"
    }
    groups = group_by_repetitions(secrets["planted"])
    figures = [_draw_by_repetitions(secrets, groups)]
    if "draws" in tables:
        figures.insert(0, _draw_among_draws(secrets, groups, tables["draws"]))
    if result.settings.get("method") != "skew-normal":  # else the curve would be compared with itself
        figures += _draw_against_curve(secrets)
    return [*figures, *(draw_exposure_by_epoch(tables["followed"]) if "followed" in tables else ())]


def _choose_colour(group: str) -> Colour:
    """The colour of a group."""
    return "control" if group == "controls" else "found"


def _build_legend(groups: Mapping[str, NDArray[np.bool_]]) -> tuple[tuple[Colour, str], ...]:
    """The colours that are used."""
    words = {"found": "secrets that were looked for", "control": "controls, never planted"}
    kinds = {_choose_colour(group) for group in groups}
    return tuple((kind, label) for kind, label in words.items() if kind in kinds)


def _draw_among_draws(
    secrets: Mapping[str, Floats], groups: Mapping[str, NDArray[np.bool_]], draws: pa.Table
) -> Figure:
    """The distribution of random secrets, and beneath it the secrets that were measured."""
    drawn, bits, label = _align_axes(secrets, draws)
    x = Scale.over(drawn, bits, label=label)
    edges = compute_bins(drawn, x)
    counts = np.histogram(drawn, edges)[0]
    histogram = Panel(
        Scale(low=x.low, high=x.high), Scale.over(counts, label="random secrets", zero=True), height=210, left=NAMES
    )
    histogram.draw_bars(edges, counts, "null", of="random secrets")
    rows = len(groups)
    names = tuple((index + 0.5, name) for index, name in enumerate(groups))
    strips = Panel(x, Scale(low=0, high=rows, named=names), height=64 + 22 * rows, left=NAMES)
    for (height, _), (name, chosen) in zip(names, groups.items(), strict=True):
        tips = [f"{value:.4g} bits" for value in bits[chosen]]
        strips.draw_dots(bits[chosen], np.full(chosen.sum(), height), _choose_colour(name), tips)
    beyond = {name: int((bits[chosen] < drawn.min()).sum()) for name, chosen in groups.items()} if drawn.size else {}
    summary = ", ".join(f"{n} of {int(groups[name].sum())} ({name})" for name, n in beyond.items())
    return Figure(
        title="The secrets among random ones",
        reading="The histogram shows random secrets of the same format: the null distribution. Each dot is a measured "
        "secret. Dots left of the histogram are more likely under the model than the null distribution allows; "
        "controls should be within it.",
        description=f"Histogram of {drawn.size:,} random secrets by {label}, median {np.median(drawn):.3g}. "
        f"More likely than all of them: {summary}."
        if drawn.size
        else "No random secret could be scored.",
        panels=(histogram, strips),
        legend=(("null", "random secrets"), *_build_legend(groups)),
    )


def _align_axes(secrets: Mapping[str, Floats], draws: pa.Table) -> tuple[Floats, Floats, str]:
    """Draws and secrets on one axis: as they are, or, for several formats, each from the middle of its own draws."""
    of, drawn, bits = (
        read_column(draws, "format"),
        read_column(draws, "log_perplexity_bits"),
        secrets["log_perplexity_bits"],
    )
    known = np.isfinite(drawn)
    of, drawn = of[known], drawn[known]
    formats, indices = np.unique(of, return_inverse=True)
    if len(formats) < 2 or "format" not in secrets:
        return drawn, bits, "log-perplexity in bits (left: more likely under the model)"
    middles = np.array([np.median(drawn[indices == index]) for index in range(len(formats))])
    own = middles[np.searchsorted(formats, secrets["format"]).clip(0, len(formats) - 1)]
    return (
        drawn - middles[indices],
        bits - own,
        "bits from the median of random secrets of the same format (left: more likely)",
    )


def _draw_by_repetitions(secrets: Mapping[str, Floats], groups: Mapping[str, NDArray[np.bool_]]) -> Figure:
    """The exposure of every secret with its bounds, by how often it was planted."""
    bits, max_bits = secrets["exposure_bits"], math.log2(float(np.nanmax(secrets["space"])))
    positions = tuple(
        (position + 0.5, f"{name} ({int(chosen.sum())})") for position, (name, chosen) in enumerate(groups.items())
    )
    y = Scale.over(bits, secrets["upper"], [max_bits, 0.0], label="exposure in bits")
    panel = Panel(
        Scale(low=0, high=len(groups), named=positions, label="how often the secret was planted (number of secrets)"), y
    )
    panel.draw_level(NULL_MEAN, f"a secret never seen: {NULL_MEAN:.2f} on average")
    panel.draw_level(max_bits, f"first guess of the model: {max_bits:.1f}")
    for (middle, _), (name, chosen) in zip(positions, groups.items(), strict=True):
        order = np.flatnonzero(chosen)[np.argsort(bits[chosen], kind="stable")]
        across = middle + np.linspace(-0.3, 0.3, len(order)) if len(order) > 1 else np.array([middle])
        panel.draw_intervals(across, secrets["lower"][order], secrets["upper"][order], _choose_colour(name))
        tips = [f"{bits[i]:.1f} bits ({secrets['lower'][i]:.1f} to {secrets['upper'][i]:.1f})" for i in order]
        panel.draw_dots(across, bits[order], _choose_colour(name), tips)
    middles = [float(bits[chosen].mean()) for chosen in groups.values()]
    panel.draw_means([position for position, _ in positions], middles, width=0.7)
    summary = "; ".join(f"{name}: mean {mean:.1f} bits" for name, mean in zip(groups, middles, strict=True))
    return Figure(
        title="Exposure by number of repetitions",
        reading="Each dot is a secret, with the bounds of its exposure; the thick line is the mean of its group. "
        "One bit more halves the search for the secret.",
        description=f"Exposure in bits, {summary}. The whole space has {max_bits:.1f} bits.",
        panels=(panel,),
        legend=_build_legend(groups),
    )


def _draw_against_curve(secrets: Mapping[str, Floats]) -> list[Figure]:
    """What the paper's curve says beside what was counted or drawn."""
    curve = secrets.get("skew_normal_bits", np.array([]))
    known = np.isfinite(curve)
    if not known.any():
        return []
    bits, curve, planted = secrets["exposure_bits"][known], curve[known], secrets["planted"][known]
    x = Scale.over(bits, curve, [0.0], label="counted or sampled, in bits")
    panel = Panel(x, Scale(low=x.low, high=x.high, label="the fitted curve, in bits"))
    panel.draw_line([x.low, x.high], [x.low, x.high], "guide")
    groups: dict[str, NDArray[np.bool_]] = {"controls": planted == 0, "secrets": planted != 0}
    groups = {name: chosen for name, chosen in groups.items() if chosen.any()}
    for name, chosen in groups.items():
        tips = [f"curve {c:.1f}, found {b:.1f}" for b, c in zip(bits[chosen], curve[chosen], strict=True)]
        panel.draw_dots(bits[chosen], curve[chosen], _choose_colour(name), tips)
    max_difference = float(np.max(np.abs(bits - curve)))
    return [
        Figure(
            title="The skew-normal estimate of the paper",
            reading="On the dashed line the paper's skew-normal estimate agrees with what was counted or sampled. "
            "Far from it the estimate misleads; the numbers of this report do not rest on it.",
            description=f"Fitted against found exposure of {bits.size} secrets; furthest apart by "
            f"{max_difference:.1f} bits.",
            panels=(panel,),
            legend=(*_build_legend(groups), ("guide", "both agree")),
        )
    ]
