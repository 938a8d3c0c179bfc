"""Readers: from the name of a corpus to its records; per format one module with `read_columns` and `iter_rows`."""
