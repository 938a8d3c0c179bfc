"""Exposure: how strongly a model memorises secrets of a known format, and whether they can be extracted."""
