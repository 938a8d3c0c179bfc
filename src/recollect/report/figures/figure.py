"""A figure: panels under one title, a legend, and what it shows in words."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from recollect.report.figures.panel import Kind, Panel


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What the page draws. All its words are ours: none comes from a corpus."""

    title: str
    reading: str
    """How to read it."""
    description: str
    """What it shows, in words and numbers, for those who cannot see it."""
    panels: tuple[Panel, ...]
    legend: tuple[tuple[Kind, str], ...] = ()
    beside: bool = False
    """Whether the panels are side by side, not one above the other."""
    reveals: tuple[str, ...] = ()
    """Findings that can be read off it: where a result withholds one of them, a report does not draw it."""
    withheld: str = ""
    """Why it is not drawn; empty if it is."""

    @property
    def svgs(self) -> list[Markup]:
        """The panels as markup; the description goes with the first."""
        return [
            panel.render_svg(self.description if i == 0 else "Continues the panel before it.")
            for i, panel in enumerate(self.panels)
        ]
