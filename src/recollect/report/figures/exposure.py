"""Figures of the exposure audit: secrets among random ones, exposure by repetitions, and the paper's curve."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.report.figures.blocks import compute_bins
from recollect.report.figures.columns import read_column
from recollect.report.figures.figure import Figure
from recollect.report.figures.panel import Colour, Panel
from recollect.report.figures.scale import Floats, Scale
from recollect.report.figures.summaries import compute_quantile, sort_distinct
from recollect.results.result import Result

MAX_GROUPS = 10
"""Numbers of repetitions that are distinguished; more are drawn as one group."""


NULL_MEAN = 1 / math.log(2)
"""The exposure that a secret which was never trained on has on average, in bits."""
NEEDED = frozenset({"planted", "exposure_bits", "lower", "upper", "space", "log_perplexity_bits"})
"""Columns without which nothing can be drawn."""
NAMES = 104
"""Room for the names of groups, beside a panel."""


def draw_exposure_figures(result: Result, tables: Mapping[str, pa.Table]) -> list[Figure]:
    """The figures of exposure that the tables at hand allow to draw."""
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


def _choose_secret_colour(group: str) -> Colour:
    """The colour of a group of secrets in a figure of exposure."""
    return "control" if group == "controls" else "found"


def _build_secrets_legend(groups: Mapping[str, NDArray[np.bool_]]) -> tuple[tuple[Colour, str], ...]:
    """The legend of a figure of exposure: the colours of secrets that are used."""
    words = {"found": "secrets that were looked for", "control": "controls, never planted"}
    kinds = {_choose_secret_colour(group) for group in groups}
    return tuple((kind, label) for kind, label in words.items() if kind in kinds)


def _draw_among_draws(
    secrets: Mapping[str, Floats], groups: Mapping[str, NDArray[np.bool_]], draws: pa.Table
) -> Figure:
    """A figure of exposure: the distribution of random secrets, and beneath it the secrets that were measured."""
    drawn, bits, label = _align_secret_axes(secrets, draws)
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
        strips.draw_dots(bits[chosen], np.full(chosen.sum(), height), _choose_secret_colour(name), tips)
    beyond = {name: int((bits[chosen] < drawn.min()).sum()) for name, chosen in groups.items()} if drawn.size else {}
    summary = ", ".join(f"{n} of {int(groups[name].sum())} ({name})" for name, n in beyond.items())
    return Figure(
        title="The secrets among random ones",
        reading="The histogram shows random secrets of the same format: the null distribution. Each dot is a measured "
        "secret. Dots left of the histogram are more likely under the model than the null distribution allows; "
        "controls should be within it.",
        description=f"Histogram of {drawn.size:,} random secrets by {label}, "
        f"median {compute_quantile(drawn, 0.5):.3g}. More likely than all of them: {summary}."
        if drawn.size
        else "No random secret could be scored.",
        panels=(histogram, strips),
        legend=(("null", "random secrets"), *_build_secrets_legend(groups)),
    )


def _align_secret_axes(secrets: Mapping[str, Floats], draws: pa.Table) -> tuple[Floats, Floats, str]:
    """The axis of a figure of exposure: draws and secrets as they are, or by distance from the middle of the draws."""
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
    middles = np.array([compute_quantile(drawn[indices == index], 0.5) for index in range(len(formats))])
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
        panel.draw_intervals(across, secrets["lower"][order], secrets["upper"][order], _choose_secret_colour(name))
        tips = [f"{bits[i]:.1f} bits ({secrets['lower'][i]:.1f} to {secrets['upper'][i]:.1f})" for i in order]
        panel.draw_dots(across, bits[order], _choose_secret_colour(name), tips)
    middles = [float(bits[chosen].mean()) for chosen in groups.values()]
    panel.draw_means([position for position, _ in positions], middles, width=0.7)
    summary = "; ".join(f"{name}: mean {mean:.1f} bits" for name, mean in zip(groups, middles, strict=True))
    return Figure(
        title="Exposure by number of repetitions",
        reading="Each dot is a secret, with the bounds of its exposure; the thick line is the mean of its group. "
        "One bit more halves the search for the secret.",
        description=f"Exposure in bits, {summary}. The whole space has {max_bits:.1f} bits.",
        panels=(panel,),
        legend=_build_secrets_legend(groups),
    )


def _draw_against_curve(secrets: Mapping[str, Floats]) -> list[Figure]:
    """A figure of exposure: what the paper's curve says beside what was counted or drawn."""
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
        panel.draw_dots(bits[chosen], curve[chosen], _choose_secret_colour(name), tips)
    max_difference = float(np.max(np.abs(bits - curve)))
    return [
        Figure(
            title="The skew-normal estimate of the paper",
            reading="On the dashed line the paper's skew-normal estimate agrees with what was counted or sampled. "
            "Far from it the estimate misleads; the numbers of this report do not rest on it.",
            description=f"Fitted against found exposure of {bits.size} secrets; furthest apart by "
            f"{max_difference:.1f} bits.",
            panels=(panel,),
            legend=(*_build_secrets_legend(groups), ("guide", "both agree")),
        )
    ]


def draw_exposure_by_epoch(history: pa.Table) -> list[Figure]:
    """One figure, if anything was followed for more than one epoch."""
    rows = {name: read_column(history, name) for name in history.column_names}
    epochs = sort_distinct(rows["epoch"])
    if len(epochs) < 2:
        return []
    across = Scale(low=float(epochs[0]), high=float(epochs[-1]))
    top = Panel(across, Scale.over(rows["exposure_bits"], label="exposure in bits", zero=True), height=230)
    clauses = []
    for name, chosen in group_by_repetitions(rows["planted"]).items():
        kind: Colour = "control" if name == "controls" else "found"
        means = _average_exposure_by_epoch(rows["epoch"][chosen], rows["exposure_bits"][chosen], epochs)
        top.draw_dots(rows["epoch"][chosen], rows["exposure_bits"][chosen], kind)
        top.draw_line(epochs, means, kind, name=name)
        clauses.append(
            f"{name}: mean {means[0]:.1f} bits after epoch {epochs[0]:.0f}, {means[-1]:.1f} after {epochs[-1]:.0f}"
        )
    return [
        Figure(
            title="Exposure while the model was trained",
            reading="Each dot is a secret at the end of an epoch, each line a mean. Secrets can be memorised long "
            "before the validation loss rises: stopping early is no protection by itself.",
            description=f"Exposure by epoch. {'; '.join(clauses)}.",
            panels=(top, _draw_losses(rows, epochs)),
        )
    ]


def _draw_losses(rows: dict[str, Floats], epochs: Floats) -> Panel:
    """Training and validation loss by epoch, beside exposure."""
    losses = {
        name: _average_exposure_by_epoch(rows["epoch"], rows[f"{name}_loss"], epochs)
        for name in ("training", "validation")
    }
    across = Scale(low=float(epochs[0]), high=float(epochs[-1]), label="epoch")
    panel = Panel(across, Scale.over(*losses.values(), label="loss"), height=200)
    panel.draw_line(epochs, losses["training"], "control", name="training")
    panel.draw_line(epochs, losses["validation"], "guide", name="validation")
    return panel


def _average_exposure_by_epoch(of: Floats, values: Floats, epochs: Floats) -> Floats:
    """The mean exposure of each epoch."""
    return np.array([values[of == epoch].mean() if (of == epoch).any() else np.nan for epoch in epochs])


def group_by_repetitions(planted: Floats) -> dict[str, NDArray[np.bool_]]:
    """For figures of exposure: which secrets were planted equally often, controls first.

    >>> {name: int(chosen.sum()) for name, chosen in group_by_repetitions(np.array([0, 0, 1, 4, np.nan])).items()}
    {'controls': 2, 'planted 1×': 1, 'planted 4×': 1, 'given': 1}
    """
    times = sort_distinct(planted[planted > 0])
    found = {"controls": planted == 0}
    if len(times) > MAX_GROUPS:
        found[f"planted {times[0]:.0f}–{times[-1]:.0f}×"] = planted > 0
    else:
        found |= {f"planted {each:.0f}×": planted == each for each in times}
    found["given"] = np.isnan(planted)
    return {name: chosen for name, chosen in found.items() if chosen.any()}
