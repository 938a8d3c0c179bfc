"""Tables as they are shown: numbers as people write them, text masked, no more than a page can hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from recollect.report.presentations import find_presentation
from recollect.report.tables import MAX_CELLS, MAX_CHARACTERS, build_table, merge_id_columns
from recollect.results.presentation import TableView
from recollect.results.result import Result

PLACE = "tables/x/rows.parquet"


def shown(table, view=None, **options):
    return build_table("rows", table, view, path=PLACE, **{"show_text": True} | options)


def words(table):
    return [[cell.words for cell in row] for row in table.rows]


def test_values_are_written_as_people_write_them_and_keep_their_number():
    columns = {"n": [12345, None], "x": [0.000012, float("nan")], "ok": [True, False], "who": ["ann", None]}
    table = shown(pa.table(columns))
    assert words(table) == [["12,345", "1.2e-05", "yes", "ann"], ["–", "–", "no", "–"]]
    assert [cell.number for cell in table.rows[0]] == [12345.0, 0.000012, None, None]
    assert table.numeric == (True, True, False, False)
    assert table.headings == ("n", "x", "ok", "who")


def test_infinity_is_said_and_sorts_as_the_largest_number():
    (least, most) = shown(pa.table({"x": [float("-inf"), float("inf")]})).rows
    assert (least[0].words, most[0].words) == ("-inf", "inf")
    assert -1e300 > least[0].number > float("-inf")
    assert 1e300 < most[0].number < float("inf")


def test_the_highest_values_come_first_as_arrow_sorts_them():
    rng = np.random.default_rng(0)
    values = [None if n % 7 == 0 else float(n) for n in rng.integers(0, 30, 200)]
    for column in (values, [None if n is None else int(n) for n in values], [str(n) for n in values]):
        halves = [pa.table({"x": column[at : at + 100], "n": list(range(at, at + 100))}) for at in (0, 100)]
        table = pa.concat_tables(halves)
        rows = shown(table, TableView(caption="Rows", first="x")).rows
        assert [int(row[1].number) for row in rows] == table.sort_by([("x", "descending")])["n"].to_pylist()


def test_a_view_chooses_columns_and_puts_the_highest_first():
    view = TableView(caption="Users", columns={"bits": "Bits", "gone": "Gone"}, first="bits")
    table = shown(pa.table({"user": ["a", "b", "c"], "bits": [1.0, 9.0, 5.0]}), view)
    assert words(table) == [["9"], ["5"], ["1"]]
    assert (table.caption, table.headings, table.left_out) == ("Users", ("Bits",), ("user",))


def test_text_from_corpora_is_masked_unless_requested():
    rows = pa.table({"secret": ["my pin is 4711"], "id": ["s-1"]})
    assert words(shown(rows, show_text=False)) == [["•••• (10–19 characters)", "s-1"]]
    assert words(shown(rows)) == [["my pin is 4711", "s-1"]]


def test_no_table_is_longer_than_a_page_can_hold():
    long = shown(pa.table({"a": range(50_000), "b": range(50_000)}))
    assert len(long.rows) == MAX_CELLS // 2
    assert long.total == 50_000
    wide = shown(pa.table({"a": ["x" * 100_000] * 2_000}))
    assert sum(len(cell.words) for row in wide.rows for cell in row) <= MAX_CHARACTERS
    assert "100,000 characters" in wide.rows[0][0].words


def test_columns_with_headings_of_their_own_are_columns_that_the_audit_writes(exposures):
    assert {*find_presentation("exposure").tables["secrets"].columns} <= {*exposures()["secrets"].column_names}


def test_ids_are_shown_once_where_users_are_audited_or_there_are_none():
    twice, apart = {"record": ["a", "b"], "user": ["a", "b"]}, {"record": ["1", "2"], "user": ["a", "b"]}
    result = Result(audit="membership", question="?", verdict=".", outcome="found")
    for by, shown in (("user", "user"), ("record", "record"), ("set", "record")):
        known = result.replace(settings={"by": by})
        assert merge_id_columns(known, pa.table(twice)).column_names == [shown]
        assert merge_id_columns(known, pa.table(apart)).column_names == ["record", "user"]
    assert merge_id_columns(result, pa.table({"user": ["a"]})).column_names == ["user"]
    assert merge_id_columns(result, pa.table(twice)).column_names == ["record", "user"]  # what it audits is not said
