"""Truncated evidence: quick ways to cut many records, beside slow ones."""

from dataclasses import fields, replace

import numpy as np
import pytest

from recollect.audits.common.truncated_evidence import _find_truncated_ends, _truncate_answers
from recollect.corpora.record import Record
from recollect.models.answers import Answers

LENGTHS = (4, 0, 7, 1, 5)


def build_answers():
    rng, rows = np.random.default_rng(0), sum(LENGTHS)
    end = np.concatenate([np.cumsum(rng.integers(1, 6, n)) for n in LENGTHS]).astype(np.int32)
    columns = {each.name: None for each in fields(Answers)}
    columns |= {
        "records": tuple(f"r{i}" for i in range(len(LENGTHS))),
        "offsets": np.concatenate([[0], np.cumsum(LENGTHS)]),
        "end": end,
        "logprob": rng.normal(size=rows),
        "rank": rng.integers(1, 9, rows),
    }
    return Answers(**columns)


def test_answers_up_to_an_end_are_the_first_rows_of_the_whole():
    answers = build_answers()
    limits = {"r4": 2, "r0": 4, "r2": 1, "r3": 1}
    ends = _find_truncated_ends(answers, limits)
    found = _truncate_answers(answers, {**ends, "r1": 3, "elsewhere": 9})
    assert found.records == (*limits, "r1")
    for record, limit in {**limits, "r1": 0}.items():
        rows, whole = found.get_rows(record), answers.get_rows(record)
        assert rows.stop - rows.start == limit
        assert not limit or ends[record] == answers.end[whole][limit - 1]
        assert (found.logprob[rows] == answers.logprob[whole][:limit]).all()
        assert (found.rank[rows] == answers.rank[whole][:limit]).all()
    assert found.entropy is None


@pytest.mark.parametrize(
    "record",
    [
        Record(id="1", user="ann", text="all of it", label="spam"),
        Record(id="1", user="ann", source="what?", target="all of it"),
    ],
)
def test_another_text_is_another_record_with_all_else_the_same(record):
    address = record.digest
    found = record.with_scored_text("all")
    slow = replace(record, text="all") if record.target is None else replace(record, target="all")
    assert [getattr(found, each.name) for each in fields(Record)] == [getattr(slow, each.name) for each in fields(slow)]
    assert found.digest == slow.digest != address == record.digest
