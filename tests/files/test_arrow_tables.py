"""Numbers come out of Parquet files as they went in, and pandas is not loaded for it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recollect.files.arrow_tables import read_parquet, read_values


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
