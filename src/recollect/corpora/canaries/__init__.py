"""Secrets of a known format: the format language and its space; planting them into a corpus."""
