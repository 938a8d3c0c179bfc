"""Figures of the exposure audit: secrets among random ones, exposure by repetitions, and the paper's curve."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.report.figures.blocks import bins
from recollect.report.figures.columns import column, repetitions
from recollect.report.figures.figure import Figure
from recollect.report.figures.following import by_epoch
from recollect.report.figures.panel import Colour, Panel
from recollect.report.figures.scale import Floats, Scale
from recollect.results.result import Result

NULL_MEAN = 1 / math.log(2)
"""The exposure that a secret which was never trained on has on average, in bits."""
NEEDED = frozenset({"planted", "exposure_bits", "lower", "upper", "space", "log_perplexity_bits"})
"""Columns without which nothing can be drawn."""
NAMES = 104
"""Room for the names of groups, beside a panel."""


def exposure_figures(result: Result, tables: Mapping[str, pa.Table]) -> list[Figure]:
    """What the tables at hand allow to draw."""
    if "secrets" not in tables or not tables["secrets"].num_rows or not {*tables["secrets"].column_names} >= NEEDED:
        return []
    secrets = {name: column(tables["secrets"], name) for name in tables["secrets"].column_names if name != "secret"}
    groups = repetitions(secrets["planted"])
    figures = [_by_repetitions(secrets, groups)]
    if "draws" in tables:
        figures.insert(0, _among_draws(secrets, groups, tables["draws"]))
    if result.settings.get("method") != "skew-normal":  # else the curve would be compared with itself
        figures += _against_curve(secrets)
    return [*figures, *(by_epoch(tables["followed"]) if "followed" in tables else ())]


def _kind(group: str) -> Colour:
    """The colour of a group."""
    return "control" if group == "controls" else "found"


def _legend(groups: Mapping[str, NDArray[np.bool_]]) -> tuple[tuple[Colour, str], ...]:
    """The colours that are used."""
    words = {"found": "secrets that were looked for", "control": "controls, never planted"}
    kinds = {_kind(group) for group in groups}
    return tuple((kind, said) for kind, said in words.items() if kind in kinds)


def _among_draws(secrets: Mapping[str, Floats], groups: Mapping[str, NDArray[np.bool_]], draws: pa.Table) -> Figure:
    """The distribution of random secrets, and beneath it the secrets that were measured."""
    drawn, bits, label = _compared(secrets, draws)
    x = Scale.over(drawn, bits, label=label)
    edges = bins(drawn, x)
    counts = np.histogram(drawn, edges)[0]
    histogram = Panel(
        Scale(low=x.low, high=x.high), Scale.over(counts, label="random secrets", zero=True), height=210, left=NAMES
    )
    histogram.bars(edges, counts, "null", of="random secrets")
    rows = len(groups)
    names = tuple((place + 0.5, name) for place, name in enumerate(groups))
    strips = Panel(x, Scale(low=0, high=rows, named=names), height=64 + 22 * rows, left=NAMES)
    for (height, _), (name, chosen) in zip(names, groups.items(), strict=True):
        told = [f"{value:.4g} bits" for value in bits[chosen]]
        strips.dots(bits[chosen], np.full(chosen.sum(), height), _kind(name), told)
    beyond = {name: int((bits[chosen] < drawn.min()).sum()) for name, chosen in groups.items()} if drawn.size else {}
    said = ", ".join(f"{n} of {int(groups[name].sum())} ({name})" for name, n in beyond.items())
    return Figure(
        title="The secrets among random ones",
        reading="The histogram shows random secrets of the same format: the null distribution. Each dot is a measured "
        "secret. Dots left of the histogram are likelier to the model than expected under the null hypothesis; "
        "controls should lie within it.",
        description=f"Histogram of {drawn.size:,} random secrets by {label}, median {np.median(drawn):.3g}. "
        f"Likelier than all of them: {said}."
        if drawn.size
        else "No random secret could be scored.",
        panels=(histogram, strips),
        legend=(("null", "random secrets"), *_legend(groups)),
    )


def _compared(secrets: Mapping[str, Floats], draws: pa.Table) -> tuple[Floats, Floats, str]:
    """Draws and secrets on one axis: as they are, or, for several formats, each from the middle of its own draws."""
    of, drawn, bits = column(draws, "format"), column(draws, "log_perplexity_bits"), secrets["log_perplexity_bits"]
    known = np.isfinite(drawn)
    of, drawn = of[known], drawn[known]
    formats, places = np.unique(of, return_inverse=True)
    if len(formats) < 2 or "format" not in secrets:
        return drawn, bits, "log-perplexity in bits (left: likelier to the model)"
    middles = np.array([np.median(drawn[places == place]) for place in range(len(formats))])
    own = middles[np.searchsorted(formats, secrets["format"]).clip(0, len(formats) - 1)]
    return (
        drawn - middles[places],
        bits - own,
        "bits from the median of random secrets of the same format (left: likelier)",
    )


def _by_repetitions(secrets: Mapping[str, Floats], groups: Mapping[str, NDArray[np.bool_]]) -> Figure:
    """The exposure of every secret with its bounds, by how often it was planted."""
    bits, whole = secrets["exposure_bits"], math.log2(float(np.nanmax(secrets["space"])))
    places = tuple(
        (place + 0.5, f"{name} ({int(chosen.sum())})") for place, (name, chosen) in enumerate(groups.items())
    )
    y = Scale.over(bits, secrets["upper"], [whole, 0.0], label="exposure in bits")
    panel = Panel(
        Scale(low=0, high=len(groups), named=places, label="how often the secret was planted (number of secrets)"), y
    )
    panel.level(NULL_MEAN, f"a secret never seen: {NULL_MEAN:.2f} on average")
    panel.level(whole, f"first guess of the model: {whole:.1f}")
    for (middle, _), (name, chosen) in zip(places, groups.items(), strict=True):
        order = np.flatnonzero(chosen)[np.argsort(bits[chosen], kind="stable")]
        across = middle + np.linspace(-0.3, 0.3, len(order)) if len(order) > 1 else np.array([middle])
        panel.spans(across, secrets["lower"][order], secrets["upper"][order], _kind(name))
        told = [f"{bits[i]:.1f} bits ({secrets['lower'][i]:.1f} to {secrets['upper'][i]:.1f})" for i in order]
        panel.dots(across, bits[order], _kind(name), told)
    middles = [float(bits[chosen].mean()) for chosen in groups.values()]
    panel.means([place for place, _ in places], middles, width=0.7)
    said = "; ".join(f"{name}: mean {mean:.1f} bits" for name, mean in zip(groups, middles, strict=True))
    return Figure(
        title="Exposure by number of repetitions",
        reading="Each dot is a secret, with the bounds of its exposure; the thick line is the mean of its group. "
        "One bit more halves the search for the secret.",
        description=f"Exposure in bits, {said}. The whole space has {whole:.1f} bits.",
        panels=(panel,),
        legend=_legend(groups),
    )


def _against_curve(secrets: Mapping[str, Floats]) -> list[Figure]:
    """What the paper's curve says beside what was counted or drawn."""
    curve = secrets.get("skew_normal_bits", np.array([]))
    known = np.isfinite(curve)
    if not known.any():
        return []
    bits, curve, planted = secrets["exposure_bits"][known], curve[known], secrets["planted"][known]
    x = Scale.over(bits, curve, [0.0], label="counted or sampled, in bits")
    panel = Panel(x, Scale(low=x.low, high=x.high, label="the fitted curve, in bits"))
    panel.line([x.low, x.high], [x.low, x.high], "guide")
    groups: dict[str, NDArray[np.bool_]] = {"controls": planted == 0, "secrets": planted != 0}
    groups = {name: chosen for name, chosen in groups.items() if chosen.any()}
    for name, chosen in groups.items():
        told = [f"curve {c:.1f}, found {b:.1f}" for b, c in zip(bits[chosen], curve[chosen], strict=True)]
        panel.dots(bits[chosen], curve[chosen], _kind(name), told)
    apart = float(np.max(np.abs(bits - curve)))
    return [
        Figure(
            title="The skew-normal estimate of the paper",
            reading="On the dashed line the paper's skew-normal estimate agrees with what was counted or sampled. "
            "Far from it the estimate misleads; the numbers of this report do not rest on it.",
            description=f"Fitted against found exposure of {bits.size} secrets; furthest apart by {apart:.1f} bits.",
            panels=(panel,),
            legend=(*_legend(groups), ("guide", "both agree")),
        )
    ]
