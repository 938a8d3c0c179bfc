"""Corpora of records grouped by user: reading, splitting, cohorts, made-up people."""

from __future__ import annotations

from recollect.corpora.columns import Columns
from recollect.corpora.corpus import Corpus
from recollect.corpora.reading import read_corpus
from recollect.corpora.record import Kind, Record
from recollect.corpora.summary import Summary

__all__ = ["Columns", "Corpus", "Kind", "Record", "Summary", "read_corpus"]
