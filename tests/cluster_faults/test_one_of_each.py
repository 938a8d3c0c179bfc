"""One of each that a cluster can lose, on smaller jobs than those of `make faults`: the same result, nothing twice."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("ray", reason="Ray is not installed: nothing can be lost of a cluster")

from node_deaths import Faults

import network_guard

pytestmark = pytest.mark.ray
SIZES = {"score": 10, "train": 4}


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    os.environ[network_guard.ALLOWED] = "any"  # it is made before the mark of a test is looked at
    started = Faults(tmp_path_factory.mktemp("faults"), SIZES)
    yield started
    started.close()


@pytest.mark.parametrize(
    ("killed", "job"),
    [("worker", "score"), ("node", "score"), ("node", "train"), ("driver", "score"), ("head", "score")],
)
def test_what_is_lost_of_a_cluster_changes_no_result_and_nothing_is_made_twice(faults, killed, job):
    trial = faults.run(killed, job, 0)
    assert trial.faults == []
    assert trial.made_twice == 0
