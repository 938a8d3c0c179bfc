"""When records were written: ISO dates, seconds since 1970, tables' own times; rubbish is refused."""

import gzip
import json
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import polars
import pytest

from recollect.corpora.readers.columns import Columns
from recollect.corpora.readers.corpus_reader import read_corpus
from recollect.corpora.record import Record
from recollect.corpora.segmentation import Split
from recollect.corpora.times import period_of
from recollect.errors import CorpusError
from recollect.pipeline.plans.refs import CorpusRef
from recollect.testing.refusals import refused

NOON = datetime(2023, 3, 1, 12, tzinfo=UTC)
TIMED = Columns(time="when")


def times(rows, **options):
    return [record.time for record in read_corpus(rows, columns=TIMED, **options)]


@pytest.mark.parametrize(
    "value",
    [
        "2023-03-01T12:00:00Z",
        "2023-03-01T14:00:00+02:00",
        " 2023-03-01 12:00 ",
        1677672000,
        1677672000.0,
        "1677672000",
        NOON,
        NOON.replace(tzinfo=None),
        NOON.astimezone(timezone(timedelta(hours=5))),
        np.datetime64("2023-03-01T12:00"),
    ],
)
def test_a_time_is_read_as_utc(value):
    assert times([{"text": "a", "when": value}]) == [NOON]


@pytest.mark.parametrize("value", ["2023-03-01", "20230301", date(2023, 3, 1)])
def test_a_date_is_its_midnight(value):
    assert times([{"text": "a", "when": value}]) == [NOON.replace(hour=0)]


def test_nulls_and_missing_values_stay_unknown():
    rows = [{"text": "a", "when": NOON.isoformat()}, {"text": "b", "when": None}, {"text": "c", "when": " "}]
    assert times([*rows, {"text": "d"}, {"text": "e", "when": float("nan")}]) == [NOON, None, None, None, None]


@pytest.mark.parametrize(
    "value", ["yesterday", "2023-13-01", 20230101, 2023, -5, True, 1677672000000, ["2023"], "31/12/2023", float("inf")]
)
def test_rubbish_is_refused_or_skipped_and_counted(value):
    rows = [{"text": "a", "when": "2023-03-01"}, {"text": "b", "when": value}]
    with refused("bad_time", CorpusError):
        times(rows)
    corpus = read_corpus(rows, columns=TIMED, skip_bad=True)
    assert corpus.skipped == {"bad_time": 1}


def test_a_column_that_is_not_there_is_refused_and_one_that_is_not_named_is_not_read():
    with refused("missing_column", CorpusError):
        times([{"text": "a"}])
    assert [r.time for r in read_corpus([{"text": "a", "time": "rubbish"}])] == [None]


def test_a_time_is_no_part_of_a_record():
    with_time, without = (read_corpus([{"text": "a", "when": "2023"}], columns=c) for c in (Columns(), Columns()))
    timed = read_corpus([{"text": "a", "when": "2023-03-01"}], columns=TIMED)
    assert timed.digest == with_time.digest == without.digest
    assert list(timed) == list(without)


def test_every_format_and_reference_reads_times(tmp_path):
    rows = [{"user": "ann", "text": "one two. three four.", "when": "2023-03-01"}]
    polars.DataFrame(rows).with_columns(polars.col("when").str.to_datetime()).write_parquet(tmp_path / "a.parquet")
    polars.DataFrame(rows).write_csv(tmp_path / "a.csv")
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        file.write(json.dumps(rows[0]) + "\n")
    for name in ("a.parquet", "a.csv", "a.jsonl.gz"):
        (record,) = CorpusRef(corpus=str(tmp_path / name), time_column="when").read()
        assert period_of(record) == "2023-03"
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 3)), y=np.array([0, 1]), when=np.array([1677672000, 1677672000]))
    assert [r.time for r in CorpusRef(corpus=str(tmp_path / "a.npz"), time_column="when").read()] == [NOON, NOON]


def test_pieces_of_a_text_are_of_its_time():
    found = times([{"text": "One two. Three four.", "when": NOON}], split=Split(by="sentences"))
    assert found == [NOON, NOON]


@pytest.mark.parametrize(
    ("time", "periods"),
    [
        (datetime(2020, 12, 31, 23, tzinfo=UTC), ("2020-W53", "2020-12", "2020-Q4")),
        (datetime(2021, 1, 3, tzinfo=UTC), ("2020-W53", "2021-01", "2021-Q1")),
        (datetime(2021, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))), ("2020-W53", "2020-12", "2020-Q4")),
        (None, (None, None, None)),
    ],
)
def test_periods_are_those_of_the_calendar_in_utc(time, periods):
    record = Record(id="1", text="a", time=time)
    assert tuple(period_of(record, each) for each in ("week", "month", "quarter")) == periods
