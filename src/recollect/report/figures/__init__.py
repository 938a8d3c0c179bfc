"""Figures as inline SVG: axes, panels, what several audits share, and what one audit shows."""
