"""Findings in experiment trackers, read back with the trackers' own readers."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import recollect
from recollect.report.tracking import collect_metrics, collect_tags, log_to_wandb
from recollect.results.result import LimitCheck
from recollect.testing.refusals import refused


@pytest.fixture
def result(exposed):
    return exposed().replace(limits=(LimitCheck(limit="x>1", status="exceeded", value=2.0),), severity="high")


def test_every_finding_is_a_metric_with_the_ends_of_its_interval(result):
    (finding,) = result.findings
    assert collect_metrics([result]) == {
        "exposure/exposure_bits_planted_9": finding.value,
        "exposure/exposure_bits_planted_9.lower": finding.interval[0],
        "exposure/exposure_bits_planted_9.upper": finding.interval[1],
        "exposure/limits_exceeded": 1.0,
    }


def test_no_sentence_and_nobody_is_among_the_tags(result, everything_said):
    tags = collect_tags([result.replace(**everything_said)])
    assert tags["recollect.exposure.outcome"] == "inconclusive"
    assert tags["recollect.exposure.severity"] == "high"
    assert not any("ann" in value or " " in value for value in tags.values())


@pytest.mark.slow
def test_mlflow_gives_back_what_was_logged(result, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the small package has no database
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    run = recollect.to_mlflow(folder.path, step=3)
    data = mlflow.get_run(run).data
    expected = collect_metrics(folder.read_results().values())
    assert data.metrics == pytest.approx(expected)
    assert data.tags["recollect.exposure.outcome"] == "found"
    with mlflow.start_run() as active:
        assert recollect.to_mlflow(result) == active.info.run_id
    assert mlflow.get_run(active.info.run_id).data.metrics["exposure/limits_exceeded"] == 1.0


def test_tensorboard_gives_back_what_was_logged(result, tmp_path):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    folder = recollect.to_tensorboard(result, tmp_path / "logs", step=7)
    (file,) = folder.iterdir()
    events = [event for event in loader.EventFileLoader(str(file)).Load() if event.HasField("summary")]
    assert {event.step for event in events} == {7}
    read = {
        value.tag: value.tensor.float_val[0]
        for event in events
        for value in event.summary.value
        if value.tensor.float_val
    }
    assert read == pytest.approx(collect_metrics([result]), rel=1e-6)
    texts = {value.tag: value for event in events for value in event.summary.value if value.tensor.string_val}
    assert texts["recollect.exposure.outcome"].tensor.string_val[0] == b"found"


def test_a_run_of_weights_and_biases_gets_metrics_and_summary(result):
    logged, summary = [], {}
    log_to_wandb([result], run=SimpleNamespace(log=lambda m, step: logged.append((m, step)), summary=summary), step=2)
    assert logged == [(collect_metrics([result]), 2)]
    assert summary == collect_tags([result])


@pytest.mark.parametrize(
    ("module", "call", "command"),
    [
        ("mlflow", lambda result, _: recollect.to_mlflow(result), "pip install mlflow-skinny"),
        ("wandb", lambda result, _: recollect.to_wandb(result), "pip install wandb"),
        (
            "tensorboard.compat.proto.summary_pb2",
            recollect.to_tensorboard,
            "pip install tensorboard",
        ),
    ],
)
def test_a_tracker_that_is_not_installed_is_named_with_the_command(
    module, call, command, result, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)
    with refused("tracker_missing") as error:
        call(result, tmp_path)
    assert command in error.error.do
