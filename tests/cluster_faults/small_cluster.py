"""Real Ray clusters of several raylets on one machine, as small as they can be."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path

from recollect.execution.on_ray import _RayActor
from recollect.execution.threads import set_environment

HERE = Path(__file__).parent
WORKLOADS = HERE.parent / "execution"
SOURCES = HERE.parents[1] / "src"
STORE_BYTES = 80 << 20
"""The least that Ray takes for an object store."""
WORKER_TITLE = f"ray::{_RayActor.__name__}"
"""The command line that Ray gives to the processes of our workers begins with this."""


def build_environment(*more: Path) -> dict[str, str]:
    """What raylets find: this package and these folders, no guard against connections, and nobody phones home.

    Their workers are as important as any other process; by Ray's default, they would starve beside other work.
    """
    paths = [str(path) for path in (*more, SOURCES, HERE, WORKLOADS)]
    return {
        "PYTHONPATH": os.pathsep.join(paths),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "OMP_NUM_THREADS": "1",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    }


@contextmanager
def start_cluster(*, nodes: int, cpus: int = 1):
    """A cluster with a head that gives no CPUs, and so many nodes."""
    from ray.cluster_utils import Cluster

    with set_environment(build_environment()):  # of all that is started beside raylets
        cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "include_dashboard": False,
                "include_log_monitor": False,
                "no_monitor": True,  # of an autoscaler
                "object_store_memory": STORE_BYTES,
                "env_vars": build_environment(),
            },
        )
    try:
        for _ in range(nodes):
            add_node(cluster, cpus=cpus)
        yield cluster
    finally:
        cluster.shutdown()


def add_node(cluster, *paths: Path, cpus: int = 1, **more):
    """One more node."""
    return cluster.add_node(
        num_cpus=cpus, object_store_memory=STORE_BYTES, env_vars=build_environment(*paths), wait=True, **more
    )


if __name__ == "__main__":
    with start_cluster(nodes=int(sys.argv[1])) as started:
        print(started.address, flush=True)
        sys.stdin.read()
