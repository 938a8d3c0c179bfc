"""Readers: one module per format, each with `names` (the columns) and `rows`."""

from __future__ import annotations

from recollect.corpora.readers.formats import names_of, rows_of

__all__ = ["names_of", "rows_of"]
