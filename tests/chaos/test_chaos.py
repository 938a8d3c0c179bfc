"""Five trials of `make chaos`, and all of them: equal results or one clear refusal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")


def run_trials(home, *words):
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, str(RUN), str(home), *words], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


def test_five_random_disturbances_end_with_equal_results_or_one_refusal(tmp_path):
    assert "5 trials, 0 with a fault, 0 not done yet." in run_trials(tmp_path, "--quick")
    assert len((tmp_path / "trials.jsonl").read_text().splitlines()) == 5


@pytest.mark.chaos
def test_all_random_disturbances_end_with_equal_results_or_one_refusal(tmp_path):
    assert " 0 with a fault, 0 not done yet." in run_trials(tmp_path, "--minutes", "600")
