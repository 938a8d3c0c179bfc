"""Corpora of records grouped by user: reading, splitting, cohorts, made-up people."""
