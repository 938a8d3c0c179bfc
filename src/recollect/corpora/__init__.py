"""Corpora of records grouped by user: reading, splitting, cohorts, made-up people."""

from __future__ import annotations

from recollect.corpora.columns import Columns
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Kind, Record
from recollect.corpora.splitting import Split
from recollect.corpora.summary import Summary
from recollect.corpora.validating import read_corpus

__all__ = ["Columns", "Corpus", "Kind", "Record", "Split", "Summary", "read_corpus"]
