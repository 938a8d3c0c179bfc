"""Corpora of records grouped by user: reading, splitting, cohorts, synthetic people."""

from __future__ import annotations

from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.columns import Columns
from recollect.corpora.corpus import Corpus
from recollect.corpora.corpus_reader import read_corpus
from recollect.corpora.corpus_summary import Summary
from recollect.corpora.members import Members, read_members
from recollect.corpora.partitions import build_cohorts, draw_folds, draw_groups, draw_halves, list_units
from recollect.corpora.record import Kind, Record
from recollect.corpora.segmentation import Split
from recollect.corpora.user_assignment import assign_artificial_users

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
    "assign_artificial_users",
    "build_cohorts",
    "draw_folds",
    "draw_groups",
    "draw_halves",
    "list_units",
    "read_corpus",
    "read_members",
]
