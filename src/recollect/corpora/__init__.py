"""Corpora of records grouped by user: reading, splitting, cohorts, synthetic people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy_exports import export_lazily

if TYPE_CHECKING:
    from recollect.corpora.cohorts import Cohorts as Cohorts
    from recollect.corpora.cohorts import Unit as Unit
    from recollect.corpora.corpus import Corpus as Corpus
    from recollect.corpora.corpus import Summary as Summary
    from recollect.corpora.members import Members as Members
    from recollect.corpora.members import read_members as read_members
    from recollect.corpora.partitions import build_cohorts as build_cohorts
    from recollect.corpora.partitions import draw_balanced_groups as draw_balanced_groups
    from recollect.corpora.partitions import draw_folds as draw_folds
    from recollect.corpora.partitions import draw_groups as draw_groups
    from recollect.corpora.partitions import draw_halves as draw_halves
    from recollect.corpora.partitions import list_units as list_units
    from recollect.corpora.readers.columns import Columns as Columns
    from recollect.corpora.readers.corpus_reader import read_corpus as read_corpus
    from recollect.corpora.record import Kind as Kind
    from recollect.corpora.record import Record as Record
    from recollect.corpora.segmentation import Split as Split
    from recollect.corpora.user_assignment import assign_artificial_users as assign_artificial_users

__getattr__, __all__ = export_lazily(
    __name__,
    {
        "cohorts": ["Cohorts", "Unit"],
        "readers.columns": ["Columns"],
        "corpus": ["Corpus", "Summary"],
        "readers.corpus_reader": ["read_corpus"],
        "members": ["Members", "read_members"],
        "partitions": [
            "build_cohorts",
            "draw_balanced_groups",
            "draw_folds",
            "draw_groups",
            "draw_halves",
            "list_units",
        ],
        "record": ["Kind", "Record"],
        "segmentation": ["Split"],
        "user_assignment": ["assign_artificial_users"],
    },
)
