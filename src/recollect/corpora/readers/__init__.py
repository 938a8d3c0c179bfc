"""Readers: one module per format, each with `read_columns` (the columns that exist) and `iter_rows`."""
