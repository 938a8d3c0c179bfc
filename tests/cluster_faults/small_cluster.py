"""Real Ray clusters of several raylets on one machine, as small as they can be."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from recollect.execution.on_ray import _RayActor
from recollect.execution.threads import set_environment

HERE = Path(__file__).parent
WORKLOADS = HERE.parent / "execution"
SOURCES = HERE.parents[1] / "src"
START_SECONDS = 300.0
"""How long a node may take to join; Ray itself gives up after 30 seconds, which a busy machine can need."""
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
        "RAY_agent_register_timeout_ms": f"{1000 * START_SECONDS:.0f}",  # else a raylet ends itself
        "OMP_NUM_THREADS": "1",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    }


@contextmanager
def wait_for_nodes():
    """While this lasts, nodes that are started here are waited for longer than Ray does by itself."""
    from ray._private import services

    def get_node(*given):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return original(*given)
            except RuntimeError:  # it has not joined yet
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    original, services.get_node = services.get_node, get_node
    try:
        yield
    finally:
        services.get_node = original


@contextmanager
def start_cluster(*, nodes: int, cpus: int = 1):
    """A cluster with a head that gives no CPUs, and so many nodes."""
    from ray.cluster_utils import Cluster

    with set_environment(build_environment()), wait_for_nodes():  # of all that is started beside raylets
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
    with wait_for_nodes():
        return cluster.add_node(
            num_cpus=cpus, object_store_memory=STORE_BYTES, env_vars=build_environment(*paths), wait=True, **more
        )


if __name__ == "__main__":
    with start_cluster(nodes=int(sys.argv[1])) as started:
        print(started.address, flush=True)
        sys.stdin.read()
