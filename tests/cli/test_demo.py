"""The demonstration tells the truth, the same every time, and is found again."""

from __future__ import annotations

import json
import stat

from typer.testing import CliRunner

from recollect.cli.app import app
from recollect.corpora.cohorts import Cohorts
from recollect.results.folders import RunFolder


def demo(folder):
    done = CliRunner().invoke(app, ["demo", "--out", str(folder), "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_demo_finds_what_the_small_model_remembers(tmp_path):
    first = demo(tmp_path / "one")
    assert first["outcome"] == "found"
    assert first["findings"][0]["interval"][0] > 0.5
    kept = RunFolder(tmp_path / "one").read_result("demo")
    assert kept.model_dump(mode="json") == first
    assert len(Cohorts.load(tmp_path / "one" / "cohorts.json").members("target")) == 30
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o700
    again = demo(tmp_path / "one")
    for result in (first, again):
        result["provenance"]["seconds"] = 0
    assert again == first
