"""Every study of the reproductions can be loaded, so that a renamed module does not break one unseen."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from recollect.errors import RecollectError

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


def test_what_a_training_came_to_is_kept_at_once_and_made_once(load, tmp_path):
    bench = load("huang2021", "common.bench")
    made = []

    def make():
        made.append(1)
        return {"share": 0.123456789, "rows": [1, None]}

    lab = bench.Bench(data=tmp_path, work=tmp_path / "work", results=tmp_path / "results", say=lambda line: None)
    for _ in range(2):
        assert lab.keep("study", "seed-0", ["revision", 1], make) == {"share": 0.123457, "rows": [1, None]}
    assert len(made) == 1
    assert (tmp_path / "results" / "parts" / "study" / "seed-0.json").is_file()
    lab.keep("study", "seed-0", ["revision", 2], make)
    assert len(made) == 2


def test_a_run_of_kept_results_alone_makes_nothing(load, tmp_path):
    bench = load("huang2021", "common.bench")
    lab = bench.Bench(data=tmp_path, work=tmp_path, results=tmp_path, only_kept=True)
    with pytest.raises(bench.NotKeptError):
        lab.keep("study", "seed-0", 1, lambda: pytest.fail("made"))


def test_the_figures_of_a_study_are_kept_after_each_of_its_trainings(load, monkeypatch, tmp_path):
    running, outcomes = load("huang2021", "common.running"), load("huang2021", "common.outcomes")

    def study(lab):
        for count in (1, 2):
            yield outcomes.Outcome(title="t", scale="s", figures=[outcomes.Figure("trainings", None, count)])
        raise bench.NotKeptError("killed")

    bench = load("huang2021", "common.bench")
    monkeypatch.setitem(sys.modules, "studies.one", SimpleNamespace(study=study))
    monkeypatch.setattr("sys.argv", ["run.py", "--kept", "--work", str(tmp_path / "work")])
    (tmp_path / "expected.json").write_text("{}")
    assert running.reproduce(tmp_path, ["one"], bench.Bench) == 0
    kept = outcomes.Outcome.load(tmp_path / "results" / "one.json")
    assert [figure.ours for figure in kept.figures] == [2]


def test_a_figure_that_is_not_where_it_is_expected_is_named_by_its_beginning(load, tmp_path):
    outcomes = load("huang2021", "common.outcomes")
    (tmp_path / "expected.json").write_text('{"one": {"share…": [0, 0.05], "count": [1, 2]}}')
    figures = [outcomes.Figure("share of wrong verdicts, of 12", None, 0.5), outcomes.Figure("count", None, 2)]
    assert [*outcomes.outside("one", figures, tmp_path / "expected.json")] == [
        "one: share… is 0.50; expected from 0 to 0.05"
    ]


def test_a_figure_that_is_expected_to_be_withheld_is_named_where_it_is_told(load, tmp_path):
    outcomes = load("mireshghallah2022", "common.outcomes")
    (tmp_path / "expected.json").write_text('{"one": {"withheld": null, "told": null}}')
    figures = [outcomes.Figure("withheld", 0.8, None), outcomes.Figure("told", 0.8, 0.9)]
    assert [*outcomes.outside("one", figures, tmp_path / "expected.json")] == [
        "one: told is 0.90; expected to be withheld"
    ]


WITH_PARTS = [paper for paper in PAPERS if (REPRODUCTIONS / paper / "results" / "parts").is_dir()]


def of_kept_parts(load, paper, tmp_path):
    """What the studies of a paper come to without data and training."""
    every = load(paper, "common.running").every
    lab = load(paper, "laboratory").Laboratory(
        data=tmp_path / "nothing", work=tmp_path, results=REPRODUCTIONS / paper / "results", only_kept=True
    )
    for name in load(paper, "run").STUDIES:
        outcomes = []
        with contextlib.suppress(RecollectError):
            outcomes.extend(every(load(paper, f"studies.{name}").study(lab)))
        if outcomes:
            yield name, outcomes[-1]


@pytest.mark.parametrize("paper", WITH_PARTS)
def test_kept_results_are_what_the_kept_parts_come_to(load, tmp_path, paper):
    made = dict(of_kept_parts(load, paper, tmp_path))
    assert made
    for name, outcome in made.items():
        outcome.keep(tmp_path / f"{name}.json")
        kept = REPRODUCTIONS / paper / "results" / f"{name}.json"
        assert (tmp_path / f"{name}.json").read_text() == kept.read_text(), name


def test_figures_that_settings_share_are_columns_with_the_papers_before_ours(load):
    outcomes = load("song2019", "common.outcomes")
    named = [
        ("top-1: AUC", 0.5, 0.6),
        ("top-1: recall", None, 1),
        ("top-5: AUC", None, 0.7),
        ("top-5: recall", None, 0),
    ]
    table = outcomes.Outcome(title="t", scale="s", figures=[outcomes.Figure(*each) for each in named]).table()
    assert table.splitlines()[4:] == [
        "| | AUC (paper / ours) | recall |",
        "|---|---|---|",
        "| top-1 | 0.50 / 0.60 | 1 |",
        "| top-5 | – / 0.70 | 0 |",
    ]


def test_figures_that_no_settings_share_are_listed_one_a_row(load):
    outcomes = load("song2019", "common.outcomes")
    named = [("mean loss", 1.16, 1.05), ("seed 0: rank", 1, 3), ("seed 1: epoch", None, 4)]
    table = outcomes.Outcome(title="t", scale="s", figures=[outcomes.Figure(*each) for each in named]).table()
    assert "| mean loss | 1.16 | 1.05 |" in table
    assert "| seed 0: rank | 1 | 3 |" in table
