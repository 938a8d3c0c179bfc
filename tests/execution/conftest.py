"""Lets worker processes import the work that tests give them: they inherit this path. And a small Ray cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster_faults")]


@pytest.fixture(scope="session")
def ray_cluster():
    """A cluster of three raylets on this machine: a head without CPUs, and two nodes of one CPU each."""
    pytest.importorskip("ray", reason="Ray is not installed: nothing can be run on a cluster")
    from small_cluster import start_cluster

    import network_guard

    # it is made before the test that needs it, and its mark, are looked at
    os.environ[network_guard.ALLOWED] = "any"
    with start_cluster(nodes=2) as cluster:
        yield cluster
        from recollect.execution.on_ray import disconnect

        disconnect()


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """A work folder that all nodes of the cluster see; one for all tests, because nodes prove it once."""
    return tmp_path_factory.mktemp("shared")
