"""Numbers come out of Parquet files as they went in, tables are those of Arrow, and no pandas is loaded for it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recollect.files.arrow_tables import (
    build_array,
    build_table,
    build_table_of_rows,
    read_parquet,
    read_values,
)


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "float32", "float64", "bool"])
@pytest.mark.parametrize("first", [0, 3, 21])
def test_values_are_those_of_arrow_itself(kind, first):
    values = np.arange(21).astype(kind)
    array = pa.array(values)[first:]
    read = read_values(array)
    assert read.dtype == values.dtype
    assert read.tolist() == array.to_pylist()


def test_reading_a_table_loads_no_pandas(tmp_path):
    pq.write_table(pa.table({"score": [0.5, 1.5], "known": [True, False], "name": ["a", "b"]}), tmp_path / "a.parquet")
    assert read_parquet(tmp_path / "a.parquet", ["known"]).column_names == ["known"]
    code = (
        "import sys; from recollect.files.arrow_tables import read_parquet, read_values\n"
        "table = read_parquet(sys.argv[1])\n"
        "print([read_values(table.column(name).chunk(0)).tolist() for name in ('score', 'known')])\n"
        "assert 'pandas' not in sys.modules"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "a.parquet")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[[0.5, 1.5], [True, False]]\n"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], pa.int64()),
        ([None], pa.float64()),
        ([0.5, None, float("inf"), 3], pa.float64()),
        ([1, None, -3], pa.int32()),
        ([True, None, False] * 5, pa.bool_()),
        (["a", None, "", "grüße 😀"], pa.string()),
        (np.arange(20)[::2], pa.int64()),
        (range(3), pa.int64()),
    ],
)
def test_an_array_is_that_of_arrow_itself(values, kind):
    built, expected = build_array(values, kind), pa.array(values, kind)
    built.validate(full=True)
    assert built.equals(expected)
    assert (built.type, built.null_count) == (expected.type, expected.null_count)


@pytest.mark.parametrize("kind", ["int8", "int64", "float32", "float64", "bool", "<U3"])
def test_the_type_of_an_array_of_numpy_is_kept(kind):
    values = np.arange(9).astype(kind)
    assert build_array(values).equals(pa.array(values))


def test_a_fraction_is_not_cut_to_a_whole_number():
    with pytest.raises(TypeError, match="same_kind"):
        build_array([1.5], pa.int64())


def test_tables_are_those_of_arrow_itself():
    schema = pa.schema([("user", pa.string()), ("score", pa.float64())])
    rows = [{"user": "ann", "score": 0.5}, {"user": None, "score": None}]
    assert build_table_of_rows(rows, schema).equals(pa.Table.from_pylist(rows, schema=schema), check_metadata=True)
    assert build_table_of_rows([], schema).equals(pa.Table.from_pylist([], schema=schema), check_metadata=True)
    columns = {"score": np.array([0.5, 1.5]), "rank": [1, 2], "user": pa.array(["ann", "bob"])}
    assert build_table(columns).equals(pa.table(columns))


def test_building_a_table_loads_no_pandas(tmp_path):
    code = (
        "import sys, numpy as np, pyarrow as pa, pyarrow.parquet as pq\n"
        "from recollect.files.arrow_tables import build_array, build_table\n"
        "table = build_table({'user': build_array(['a', None], pa.string()), 'score': np.array([0.5, 1.5])})\n"
        "pq.write_table(table, sys.argv[1])\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.parquet")], check=True)  # noqa: S603
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == [
        {"user": "a", "score": 0.5},
        {"user": None, "score": 1.5},
    ]
