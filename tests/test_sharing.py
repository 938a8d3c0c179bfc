"""Tests that share a fixture of their module run in one process, however many processes there are."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="module")
def register(request, tmp_path_factory, worker_id, testrun_uid):
    """A folder that all processes of this run can see."""
    if worker_id != "master" and not request.config.getvalue("loadgroup"):
        pytest.skip("only `--dist loadgroup` keeps tests together")
    mine = tmp_path_factory.getbasetemp()
    folder = (mine if worker_id == "master" else mine.parent) / f"register-{testrun_uid}"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize("turn", range(6))
def test_every_turn_is_taken_by_the_same_process(register, turn):
    (register / f"{os.getpid()}").touch()
    assert len(list(register.iterdir())) == 1
