"""Readers: one module per format, each with `names` (the columns that exist) and `rows`."""
