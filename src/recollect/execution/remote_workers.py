"""Workers on other machines as seen from here: started where there is room, replaced when they are lost."""

from __future__ import annotations

import os
import pickle  # between our own processes only, never in a file
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from recollect.errors import RecollectError
from recollect.execution.backend import Failure
from recollect.execution.cluster_nodes import NodeReport, get_work_folder
from recollect.execution.pool import report_death
from recollect.execution.threads import thread_variables

MAX_WORK_BYTES: Final = 32 << 20
"""How large the work itself may be: models and corpora are named by their paths, and never sent."""
CHUNK_BYTES: Final = 1 << 16
"""What travels is cut into pieces of this size, because Ray puts larger arguments into its object store."""
MAX_FAILED_STARTS: Final = 3
"""Workers that may be lost in a row before one of them began."""
_PASSED_ON: Final = ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "XDG_CACHE_HOME")
"""Variables of the driver that workers have, too: the caches that the driver has filled."""


class ClusterPort(Protocol):
    """What is needed of a cluster."""

    def pack(self, work: Any) -> bytes:
        """The work as bytes."""

    def wait(self, references: list[Any]) -> list[Any]:
        """Those of what is waited for that are there; it waits until there are any."""

    def get(self, reference: Any) -> Any:
        """What was waited for, or the error that says that it will never come."""

    def kill(self, actor: Any) -> None:
        """End an actor now."""

    def keep(self, actor: Any, key: str) -> None:
        """Keep an actor that has nothing to do."""

    def name_node(self, node_id: str) -> str:
        """The name of a node in messages."""


def cut_into_pieces(data: bytes) -> list[bytes]:
    """Work for a remote worker as bytes in pieces that are small enough to travel within a message."""
    return [data[start : start + CHUNK_BYTES] for start in range(0, len(data), CHUNK_BYTES)]


def pack_work(cluster: ClusterPort, work: Callable[[Any], Any]) -> list[bytes]:
    """The work in pieces that travel; code of a script of the user's goes along, everything else by its name.

    Raises:
        RecollectError: It is so large that a model or corpus must be in it.
    """
    packed = cluster.pack(work)
    if len(packed) > MAX_WORK_BYTES:
        raise RecollectError(
            f"A model or corpus in memory would have to be sent to every worker ({len(packed) / 1e6:.0f} MB).",
            do="Save it into a folder that all nodes see, and name its path.",
            code="too_large_to_send",
        )
    return cut_into_pieces(packed)


@dataclass(kw_only=True)
class WorkerStarter:
    """Starts workers on the cluster, and waits for them."""

    start_actor: Callable[[dict[str, str]], tuple[Any, str, bool]]
    """Gives an actor with these environment variables, what it is kept by, and whether it has worked before."""
    cluster: ClusterPort
    token: tuple[str, str] | None
    """The file by which workers prove that they see the work folder, and what it says."""
    work: list[bytes]
    threads: int
    failed_starts: int = 0
    """Workers that were lost in a row before they began."""

    @property
    def work_folder(self) -> Path | None:
        """The folder that all workers must see."""
        return None if self.token is None else get_work_folder(self.token)

    def start(self) -> RemoteWorker:
        """A new worker, which waits for room if there is none."""
        variables = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        variables |= {"HF_HUB_OFFLINE": "1", **thread_variables(self.threads)}
        actor, key, used = self.start_actor(variables)
        hello = actor.begin.remote(str(Path.cwd()), self.token, *self.work)
        return RemoteWorker(starter=self, actor=actor, key=key, used=used, reference=hello)

    def wait(self, workers: Sequence[RemoteWorker]) -> list[RemoteWorker]:
        """Wait until some of these have something to say; those."""
        references = {worker.reference: worker for worker in workers}
        return [references[each] for each in self.cluster.wait(list(references))]

    def report_lost_start(self, error: BaseException) -> None:
        """Count a worker that was lost before it began; too many in a row are no accident."""
        self.failed_starts += 1
        if self.failed_starts >= MAX_FAILED_STARTS:
            raise RecollectError(
                f"{self.failed_starts} workers in a row were lost before they could begin. Ray says: {error}".strip(),
                do="Look at the logs of the nodes (/tmp/ray/session_latest/logs), then run the same again.",
                code="worker_not_started",
            ) from error


@dataclass(eq=False, kw_only=True)
class RemoteWorker:
    """One actor as seen from here."""

    starter: WorkerStarter
    actor: Any
    key: str
    """What the actor is kept by when there is nothing more to do."""
    used: bool
    """Whether it has worked before: then it may have been lost since."""
    reference: Any
    """What is waited for: its greeting, then one outcome after the other."""
    number: int | None = None
    alive: bool = True
    ready: bool = False
    where: str = ""
    """The node that it is on."""

    def submit(self, number: int, item: object, finished: dict[int, Any]) -> None:
        """Let it work on this item; an item that cannot be sent is a failure at once."""
        try:
            pieces = cut_into_pieces(pickle.dumps(item))
        except Exception as error:
            finished[number] = Failure(error, f"Item {number} cannot be sent to a worker process.\n")
            return
        self.reference = self.actor.work.remote(*pieces)
        self.number = number

    def receive(self, finished: dict[int, Any]) -> None:
        """Hear its greeting, an outcome, or that it is no more."""
        received = self.starter.cluster.get(self.reference)
        if isinstance(received, BaseException):
            self.ready = False
            self.terminate()
            if self.number is None:
                if not self.used:
                    self.starter.report_lost_start(received)
            else:
                finished[self.number] = report_death(self.number, "was lost", where=self.where)
            return
        if self.number is None:
            self.where = self.starter.cluster.name_node(received["node"])
            report = NodeReport(name=self.where, versions={"recollect": received["version"]}, folder=received["folder"])
            if problem := report.find_problem(self.starter.work_folder):
                raise problem
            self.ready, self.starter.failed_starts = True, 0
            return
        outcome = pickle.loads(received)  # noqa: S301 - of our own worker
        if isinstance(outcome, Failure):
            outcome = Failure(outcome.error, outcome.traceback, outcome.kind, self.where)
        finished[self.number] = outcome
        self.number = None

    def terminate(self) -> None:
        """End it now, or keep it if it has nothing to do; what it was writing is whole or not there."""
        if not self.alive:
            return
        self.alive = False
        if self.ready and self.number is None:
            self.starter.cluster.keep(self.actor, self.key)
        else:
            self.starter.cluster.kill(self.actor)
