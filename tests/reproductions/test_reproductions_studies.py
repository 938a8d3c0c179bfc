"""Every study of the reproductions can be loaded, so that a renamed module does not break one unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

REPRODUCTIONS = Path(__file__).resolve().parents[2] / "reproductions"
PAPERS = sorted(file.parent.name for file in REPRODUCTIONS.glob("*/run.py"))


@pytest.mark.parametrize("paper", PAPERS)
def test_the_studies_of_a_paper_are_those_that_it_runs(load, paper):
    listed = load(paper, "run").STUDIES
    files = {file.stem for file in (REPRODUCTIONS / paper / "studies").glob("*.py")}
    assert files == set(listed)
    assert all(callable(load(paper, f"studies.{name}").study) for name in listed)


def test_a_paper_may_train_its_fleets_and_score_on_a_cluster(load, monkeypatch, tmp_path):
    arguments = load("huang2021", "common.running").arguments
    bench = load("huang2021", "common.bench").Bench
    clusters = []
    for words in ([], ["--backend", "ray:head:6379"]):
        monkeypatch.setattr("sys.argv", ["run.py", "--data", str(tmp_path), *words])
        given = arguments("huang2021", ["one"])
        clusters.append(bench(data=given.data, work=tmp_path, backend=given.backend).cluster)
    assert clusters[0] is None
    assert (clusters[1].address, clusters[1].work_folder) == ("head:6379", tmp_path)
