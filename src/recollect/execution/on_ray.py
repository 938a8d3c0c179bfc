"""The Ray backend: the same ordered map on the workers of a Ray cluster that somebody else started.

A worker is an actor, which Ray places where there is room. `max_restarts` and `max_task_retries` are 0 on purpose: an
actor that Ray restarts keeps its item to itself, and waits for room that a smaller cluster may never have again. So a
dead worker is replaced by another, and what it worked on goes to whichever worker is free first.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle  # between our own processes only, never in a file
import socket
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from recollect.checks import check_at_least
from recollect.errors import MissingDependency, RecollectError, RecollectWarning, show_warning
from recollect.execution import node_probe
from recollect.execution.backend import Done, Failure, Item, Outcome, Value, attempt
from recollect.execution.cluster_nodes import (
    PACKAGES,
    SILENT,
    NodeReport,
    count_slots,
    read_node_report,
    refuse_client_address,
    write_node_token,
)
from recollect.execution.pool import Pool, make_outcome_portable
from recollect.execution.remote_workers import WorkerStarter, pack_work
from recollect.execution.threads import set_environment
from recollect.files import hold_lease, leave_locks_to_driver
from recollect.version import __version__

POLL_SECONDS: Final = 2.0
"""How often the head is looked at."""
MAX_SILENT_POLLS: Final = 5
"""How often in a row the head may give no answer."""
PROBE_SECONDS: Final = 120.0
"""How long a node may take to say what it has."""


@dataclass(frozen=True, kw_only=True)
class RayBackend:
    """Works on the nodes of a Ray cluster; this process must run on one of them."""

    address: str = "auto"
    """The cluster: "auto" for the one of this node, or HOST:6379."""
    workers: int = 0
    """How many workers there may be; 0 for as many as the cluster has room for."""
    cpus: float = 1
    """CPUs of each worker."""
    gpus: float = 0
    """GPUs of each worker; a fraction lets several share one."""
    memory: int | None = None
    """Bytes of memory that each worker is promised; None not to say."""
    threads: int = 0
    """Threads of each worker; 0 for as many as it has CPUs."""
    ship: bool = False
    """Whether this package is sent to the nodes, instead of being installed there."""
    work_folder: Path | None = None
    """The folder that all nodes must see; None if nothing is read or written."""
    in_process: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_at_least(0, workers=self.workers, cpus=self.cpus, gpus=self.gpus, threads=self.threads)
        refuse_client_address(self.address)
        object.__setattr__(self, "threads", self.threads or max(1, int(self.cpus)))

    def prepare(self) -> None:
        """Refuse a cluster on which some node could not do the work.

        Raises:
            RecollectError: No cluster answers, or a node lacks what workers need.
            MissingDependency: Ray is not installed here.
        """
        with write_node_token(self.work_folder) as token:
            self._refuse_unsuitable(_connect(self.address, ship=self.ship), token)

    def hold(self, folder: Path, *, purpose: str) -> AbstractContextManager[None]:
        """Keep other drivers out of the work folder, by a lease: locks of files are not to be trusted over NFS."""
        return hold_lease(folder, purpose=purpose)

    def inspect(self) -> list[NodeReport]:
        """What every node says of itself; nothing is refused.

        Raises:
            RecollectError: The cluster does not answer.
            MissingDependency: Ray is not installed here.
        """
        with write_node_token(self.work_folder) as token:
            return _connect(self.address, ship=self.ship).inspect_nodes(token)

    def count_workers(self) -> int:
        """How many workers there will be, as far as the cluster has room at all."""
        room = count_slots(_connect(self.address, ship=self.ship).list_room(), self.resources)
        return min(self.workers, room) if self.workers else room

    def close(self) -> None:
        """Leave the cluster, and give back the workers that were kept for more work."""
        disconnect()

    @property
    def resources(self) -> dict[str, float]:
        """What each worker takes of a node, by Ray's names."""
        requested = {"CPU": self.cpus, "GPU": self.gpus, "memory": float(self.memory or 0)}
        return {name: amount for name, amount in requested.items() if amount}

    def map(
        self, work: Callable[[Item], Value], items: Iterable[Item], *, threads: int | None = None
    ) -> Iterator[Outcome[Value]]:
        """One outcome per item, in order; see `Backend.map`.

        Raises:
            RecollectError: The cluster was lost, has no room for any worker, or a node lacks what workers need.
        """
        cluster = _connect(self.address, ship=self.ship)
        with write_node_token(self.work_folder) as token:
            self._refuse_unsuitable(cluster, token)
            size = self.workers or max(1, count_slots(cluster.list_room(), self.resources))
            packed = pack_work(cluster, work)
            starter = WorkerStarter(
                start_actor=partial(cluster.start_actor, _RayActor, self.resources),
                cluster=cluster,
                token=token,
                work=packed,
                threads=threads or self.threads,
            )
            with Pool[Item, Value](starter.start, starter.wait, size=size) as pool:
                yield from pool.map(items)

    def _refuse_unsuitable(self, cluster: RayCluster, token: tuple[str, str] | None) -> None:
        """Refuse a cluster on which some node could not do the work, before any is done."""
        new = cluster.list_nodes(self.resources) - cluster.suitable.get(self.work_folder, set())
        reports = cluster.inspect_nodes(token, new)
        problems = [found for each in reports if (found := each.find_problem(self.work_folder)) is not None]
        silent = [each for each in problems if each.code == SILENT]
        for problem in problems:
            if problem not in silent or len(silent) == len(reports):
                raise problem
            # others can work; if it does later, its workers prove themselves before they begin
            warnings.warn(f"{problem.found} It is not counted on.", RecollectWarning, stacklevel=4)
        cluster.suitable.setdefault(self.work_folder, set()).update(new)
        if not count_slots(cluster.list_room(), self.resources):
            requested = ", ".join(f"{amount:g} {name}" for name, amount in self.resources.items())
            warnings.warn(
                f"No node of the cluster has {requested} to give to a worker: waiting for one that has.",
                RecollectWarning,
                stacklevel=4,
            )


class _RayActor:
    """What runs on a node: receives the work once, then item after item. Nothing that it raises is meant."""

    _packed = b""
    _work: Outcome[Callable[[Any], Any]]

    def begin(self, folder: str, token: tuple[str, str] | None, *pieces: bytes) -> dict[str, str]:
        """Take the work; say where this is, and whether the work folder is seen from here."""
        import ray

        warnings.showwarning = show_warning
        with suppress(OSError):
            os.chdir(folder)  # relative paths mean what they mean to the driver
        packed = b"".join(pieces)
        if packed != self._packed or isinstance(
            self._work, Failure
        ):  # else what it holds on to, a loaded model, serves the same work again
            self._work, self._packed = Failure(RuntimeError("no work"), ""), packed
            gc.collect()  # what it worked with before is let go first
            self._work = attempt(pickle.loads, packed)
        seen = "" if token is None else node_probe.prove_folder(*token)
        return {"node": ray.get_runtime_context().get_node_id(), "folder": seen, "version": __version__}

    def work(self, *pieces: bytes) -> bytes:
        """The outcome of working on one item."""
        item: Outcome[Any] = attempt(pickle.loads, b"".join(pieces))
        if isinstance(self._work, Done) and isinstance(item, Done):
            with leave_locks_to_driver():
                return make_outcome_portable(attempt(self._work.value, item.value))
        return make_outcome_portable(self._work if isinstance(self._work, Failure) else item)


_connections: dict[tuple[str, bool], RayCluster] = {}
"""The cluster that this process is connected to, one at most, by its address and whether the package is shipped."""
_DRIVER_SETTINGS: Final = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray warns of what it will do one day
    "RAY_gcs_rpc_server_reconnect_timeout_s": "86400",  # else Ray ends this process a minute after the head is lost
}


def _connect(address: str, *, ship: bool) -> RayCluster:
    """The cluster; this process stays connected to it until `disconnect`."""
    try:
        import ray
    except ImportError as error:
        raise MissingDependency(
            "A Ray cluster is named, and Ray is not installed.", do="pip install 'recollect[ray]'", code="ray_missing"
        ) from error
    if (address, ship) in _connections:
        return _connections[address, ship].refuse_lost()
    if ray.is_initialized() and not _connections:  # by whoever calls us, who also disconnects
        return RayCluster(ray)
    disconnect()
    # a folder of this package alone: a working directory would take `.git` and all data along
    package = {"py_modules": [str(Path(node_probe.__file__).parents[1])], "excludes": ["**/__pycache__"]}
    with set_environment(_DRIVER_SETTINGS):
        try:
            ray.init(
                address=address,
                namespace="recollect",
                log_to_driver=False,
                logging_level=logging.ERROR,
                runtime_env=package if ship else None,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise RecollectError(
                f"No Ray cluster answers at {address!r}.",
                do="Run this on a node of the cluster (`ray start --address=HEAD:6379` makes this machine one), "
                "or start one: `ray start --head`.",
                code="no_cluster",
            ) from error
    with suppress(AttributeError):
        # there is no other way to keep what raylets have to say off standard output, which may be read by a program
        ray._private.worker.print_to_stdstream = _say_nothing
    cluster = _connections[address, ship] = RayCluster(ray)
    return cluster


def disconnect() -> None:
    """Leave the cluster that was connected to, and give back the workers that were kept."""
    while _connections:
        _connections.popitem()[1].disconnect()


def _say_nothing(*_: Any, **__: Any) -> None:
    """In place of what prints messages of Ray."""


class RayCluster:
    """What we ask of Ray."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._head = ray.get_runtime_context().gcs_address
        self._silent, self._checked = 0, time.monotonic()
        self.lost = False
        """Whether the head is gone: then whatever else is asked of Ray would never return."""
        self.suitable: dict[Path | None, set[str]] = {}
        """The nodes that were found to have what is needed, and to see a work folder, by the folder."""
        self._idle: dict[str, list[Any]] = {}
        """Actors that have nothing to do, by what they were started with."""

    def refuse_lost(self) -> RayCluster:
        """Itself, unless its head is gone.

        Raises:
            RecollectError: It is.
        """
        if self.lost:
            raise RecollectError(
                f"The head of the Ray cluster at {self._head} no longer answers.",
                do="Stop what is left of it (`ray stop` on every node), start it again, and run the same command: "
                "what was finished is kept.",
                code="cluster_lost",
            )
        return self

    def disconnect(self) -> None:
        """Leave the cluster, which ends all actors."""
        if not self.lost:
            self._ray.shutdown()

    def pack(self, work: Any) -> bytes:
        """The work as bytes."""
        return bytes(self._ray.cloudpickle.dumps(work))

    def list_room(self) -> list[dict[str, float]]:
        """What each node has to give in all."""
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def name_node(self, node_id: str) -> str:
        """The name of a node in messages."""
        for node in self._ray.nodes():
            if node["NodeID"] == node_id:
                return f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}, {node_id[:6]})"
        return node_id[:6]

    def list_nodes(self, requested: dict[str, float]) -> set[str]:
        """The ids of nodes that have so much to give."""
        return {
            node["NodeID"]
            for node in self._ray.nodes()
            if node["Alive"] and count_slots([node["Resources"]], requested)
        }

    def inspect_nodes(self, token: tuple[str, str] | None, chosen: set[str] | None = None) -> list[NodeReport]:
        """What Ray's nodes say of themselves.

        Args:
            token: The file in the work folder that they must see, and what it says.
            chosen: The ids of the nodes; None for all.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # by value, because a node without this package must be able to answer
        self._ray.cloudpickle.register_pickle_by_value(node_probe)
        probe = self._ray.remote(node_probe.describe_node)
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        nodes = [node for node in alive if chosen is None or node["NodeID"] in chosen]
        sent = time.time()
        pending = [
            probe.options(
                num_cpus=0,
                max_retries=1,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            ).remote(*(token or (None, "")), PACKAGES)
            for node in nodes
        ]
        if pending:
            self._ray.wait(pending, num_returns=len(pending), timeout=PROBE_SECONDS)
        answers = [self.get(reference, seconds=0.1) for reference in pending]
        between, left = (sent, time.time()), {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}
        return [
            read_node_report(self.name_node(node["NodeID"]), node["Resources"], report, between=between)
            for node, report in zip(nodes, answers, strict=True)
            if node["NodeID"] in left  # of one that was lost meanwhile, nothing is expected
        ]

    def start_actor(self, kind: type, resources: dict[str, float], variables: dict[str, str]) -> tuple[Any, str, bool]:
        """An actor that Ray places as soon as there is room, or one that has nothing to do.

        Gives it with the key under which it can be kept, and whether it has worked before.
        """
        key = repr((kind.__name__, sorted(resources.items()), sorted(variables.items())))
        if self._idle.get(key):
            return self._idle[key].pop(), key, True
        options: dict[str, Any] = {"num_cpus": resources.get("CPU", 0), "num_gpus": resources.get("GPU", 0)}
        if "memory" in resources:
            options["memory"] = int(resources["memory"])
        placed = self._ray.remote(kind).options(
            **options, max_restarts=0, max_task_retries=0, runtime_env={"env_vars": variables}
        )
        return placed.remote(), key, False

    def keep(self, actor: Any, key: str) -> None:
        """Keep an actor that has nothing to do: the next work is begun without waiting for a process."""
        self._idle.setdefault(key, []).append(actor)

    def wait(self, references: list[Any]) -> list[Any]:
        """Those of what is waited for that are there; it waits until there are any.

        Raises:
            RecollectError: The head of the cluster is gone.
        """
        while True:
            done, _ = self._ray.wait(references, timeout=POLL_SECONDS)
            if time.monotonic() - self._checked > POLL_SECONDS:
                self._check_head()  # also while workers answer: they live on for a minute without it
            if done:
                return list(done)

    def get(self, reference: Any, *, seconds: float | None = None) -> Any:
        """What was waited for, or the error by which Ray says that it will never come."""
        try:
            return self._ray.get(reference, timeout=seconds)
        except self._ray.exceptions.RayError as error:
            return error

    def kill(self, actor: Any) -> None:
        """End an actor now."""
        if not self.lost:
            self._ray.kill(actor)

    def _check_head(self) -> None:
        """Notice that the head is gone before Ray ends this process, which it does after a minute."""
        host, _, port = self._head.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=POLL_SECONDS).close()
            self._silent = 0
        except OSError:
            self._silent += 1
            self.lost = self._silent >= MAX_SILENT_POLLS
            self.refuse_lost()
        finally:
            self._checked = time.monotonic()
