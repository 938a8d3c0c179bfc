"""Exposure: how deep a secret of a known format sits in a model, and whether it can be drawn out."""
