"""Corpora of records grouped by user: reading, splitting, cohorts, made-up people."""

from __future__ import annotations

from recollect.corpora.artificial import artificial_users
from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.columns import Columns
from recollect.corpora.corpus import Corpus
from recollect.corpora.dividing import cohorts_of, folds, groups, halves, units_of
from recollect.corpora.members import Members, read_members
from recollect.corpora.record import Kind, Record
from recollect.corpora.splitting import Split
from recollect.corpora.summary import Summary
from recollect.corpora.validating import read_corpus

__all__ = [
    "Cohorts",
    "Columns",
    "Corpus",
    "Kind",
    "Members",
    "Record",
    "Split",
    "Summary",
    "Unit",
    "artificial_users",
    "cohorts_of",
    "folds",
    "groups",
    "halves",
    "read_corpus",
    "read_members",
    "units_of",
]
