"""A panel of the report as an SVG file that stands alone, in the colours in which the report is printed."""

from __future__ import annotations

from pathlib import Path

from recollect.files import write_text
from recollect.report.figures.panel import Panel

STYLE = """
<style>
svg { background: #fff; font-family: sans-serif; } .words { fill: #444b57; font-size: 12px; }
.words.label { paint-order: stroke; stroke: #fff; stroke-width: 3px; stroke-linejoin: round; }
.grid { stroke: #c4c9d2; stroke-width: 0.6; } .axis { stroke: #444b57; }
.rule { stroke: #000; stroke-width: 1.2; stroke-dasharray: 5 4; } .line { fill: none; stroke-width: 2; }
.line.guide { stroke: #444b57; stroke-dasharray: 5 4; stroke-width: 1.4; }
.line.control { stroke: #4a5361; } .line.found { stroke: #b53f06; }
.fill.null { fill: #9dbcdb; } .fill.found { fill: #b53f06; fill-opacity: 0.55; }
</style>
"""


def write_panel(file: Path, panel: Panel, said: str) -> None:
    """Write the panel, with what it shows in words for those who cannot see it."""
    drawn = str(panel.render_svg(said))
    head = drawn.index(">") + 1  # the serialiser writes a ">" of the words as an entity
    opened = drawn[:head].replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    write_text(file, f"{opened}{STYLE}{drawn[head:]}\n")
