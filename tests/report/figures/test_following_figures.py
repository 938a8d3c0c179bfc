"""Exposure during training: read from the follower's file, drawn epoch by epoch."""

from __future__ import annotations

import json

import pytest

from recollect.report.exposure_history import read_exposure_history
from recollect.report.figures.exposure import draw_exposure_by_epoch
from recollect.report.report import build_report
from recollect.results.run_folder import EXPOSURE_HISTORY
from recollect.testing.refusals import refused

EPOCHS = [
    {
        "epoch": epoch,
        "training_loss": 3.0 / epoch,
        "validation_loss": None if epoch == 2 else 2.0,
        "secrets": [
            {"secret_id": "a", "planted": 1, "exposure_bits": 2.0 * epoch, "method": "sampled"},
            {"secret_id": "b", "planted": 1, "exposure_bits": 4.0 * epoch, "method": "sampled"},
            {"secret_id": "c", "planted": 0, "exposure_bits": 1.4, "method": "sampled"},
        ],
    }
    for epoch in (1, 2, 3)
]


@pytest.fixture
def followed(tmp_path):
    (tmp_path / EXPOSURE_HISTORY).write_text(json.dumps(EPOCHS))
    return read_exposure_history(tmp_path / EXPOSURE_HISTORY)


def test_means_by_repetitions_are_drawn_and_told(followed):
    (figure,) = draw_exposure_by_epoch(followed)
    assert "planted 1×: mean 3.0 bits after epoch 1, 9.0 after 3" in figure.description
    assert "controls: mean 1.4 bits" in figure.description
    exposure, losses = figure.svgs
    assert exposure.count("<circle") == 9
    assert exposure.count("<polyline") == 2
    training, validation = (line for line in losses.split("<") if line.startswith("polyline"))
    assert training.count(",") == 3
    assert validation.count(",") == 2
    assert "nan" not in exposure + losses


def test_one_epoch_is_no_curve(followed):
    assert draw_exposure_by_epoch(followed.slice(0, 3)) == []


def test_the_report_draws_it_where_the_run_folder_holds_it(folder):
    titles = {figure.title for figure in build_report(folder).answers[0].figures}
    (folder.path / EXPOSURE_HISTORY).write_text(json.dumps(EPOCHS))
    more = {figure.title for figure in build_report(folder).answers[0].figures}
    assert more - titles == {"Exposure while the model was trained"}


@pytest.mark.parametrize("text", ["{", "{}", '[{"epoch": "x"}]', '[{"epoch": 1, "secrets": [{"planted": 1}]}]'])
def test_another_file_of_that_name_is_said_to_be_none(folder, text):
    (folder.path / EXPOSURE_HISTORY).write_text(text)
    with refused("exposure_by_epoch_unreadable"):
        read_exposure_history(folder.path / EXPOSURE_HISTORY)
    assert "does not tell" in build_report(folder).answers[0].remarks[0].text
