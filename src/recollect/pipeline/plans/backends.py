"""Where the work of a plan is done: this machine, or a Ray cluster; and how it will be placed there."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from recollect.checks import describe_fields
from recollect.errors import PlanError
from recollect.execution.local import LocalBackend

if TYPE_CHECKING:
    from recollect.errors import RecollectError
    from recollect.execution.backend import Backend
    from recollect.execution.on_ray import RayBackend

_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def parse_bytes(value: Any) -> Any:
    """A size in the settings of a backend as people write it, in bytes; what is no text is left as it is.

    >>> parse_bytes("24GB"), parse_bytes("512 MiB"), parse_bytes(7)
    (24000000000, 536870912, 7)
    """
    if not isinstance(value, str):
        return value
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", value.lower())
    if found is None or found[2] not in _UNITS:
        raise ValueError("Write a size such as 24GB")
    return int(float(found[1]) * _UNITS[found[2]])


class RayRef(BaseModel):
    """A Ray cluster, and what each worker takes of it."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, json_schema_extra=describe_fields)

    address: str = "auto"
    """The cluster: auto for the one that this machine is a node of, or HOST:6379."""
    workers: Annotated[int, Field(ge=1)] | None = None
    """Workers at once; as many as there is room for by default."""
    cpus: Annotated[float, Field(gt=0)] = 1
    """CPUs, and threads, of each worker."""
    gpus: Annotated[float, Field(ge=0)] = 0
    """GPUs of each worker; a fraction lets several share one."""
    memory: Annotated[int, BeforeValidator(parse_bytes, json_schema_input_type=int | str), Field(ge=1)] | None = None
    """Memory that each worker is promised: 24GB."""
    ship: bool = False
    """Send this package to the nodes, instead of having it installed there."""


def _expand_backend(value: Any) -> Any:
    """What lets a name stand for a whole section: local, ray, ray:HOST:6379."""
    if not isinstance(value, str):
        return value
    kind, _, address = value.partition(":")
    if value == "local":
        return {}
    if kind == "ray":
        # an address of Ray Client begins likewise; it is refused where it is used
        return {"ray": {"address": value if address.startswith("//") else address or "auto"}}
    raise ValueError("Write local, ray or ray:HOST:6379")


class BackendRef(BaseModel):
    """Where work is done."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, json_schema_extra=describe_fields)

    ray: RayRef | None = None
    """A Ray cluster; this machine, if none is named."""

    def open(self, work: Path, *, workers: int | None = None, threads: int | None = None) -> Backend:
        """The backend itself; nothing is started.

        Args:
            work: The work folder, which all workers must see.
            workers: How many there may be.
            threads: Threads of each.

        Raises:
            RecollectError: The address is one of Ray Client.
        """
        if self.ray is None:
            return LocalBackend(workers=workers or 1, threads=threads or 0)
        return self.open_cluster(work, workers=workers, threads=threads)

    def open_cluster(self, work: Path, *, workers: int | None = None, threads: int | None = None) -> RayBackend:
        """The same of a cluster that is named."""
        from recollect.execution.on_ray import RayBackend

        named = self.ray or RayRef()
        return RayBackend(
            address=named.address,
            workers=named.workers or workers or 0,
            cpus=named.cpus,
            gpus=named.gpus,
            memory=named.memory,
            threads=threads or 0,
            ship=named.ship,
            work_folder=work.absolute(),
        )


BackendName = Annotated[
    BackendRef, BeforeValidator(_expand_backend, json_schema_input_type=str | BackendRef), Field(default=BackendRef())
]


def parse_backend(value: str | Mapping[str, Any] | BackendRef | None) -> BackendRef | None:
    """A backend as the command line or Python names it; None if none is named.

    >>> parse_backend("ray:head:6379").ray.address
    'head:6379'
    >>> parse_backend({"ray": {"memory": "2GB"}}).ray.memory
    2000000000

    Raises:
        PlanError: There is no such backend.
    """
    if value is None or isinstance(value, BackendRef):
        return value
    try:
        return BackendRef.model_validate(_expand_backend(value))
    except ValueError as error:
        raise PlanError(
            f"There is no backend {value!r}.", do="Write local, ray, or ray:HOST:6379.", code="unknown_backend"
        ) from error


@dataclass(frozen=True, kw_only=True)
class WorkPlacement:
    """How work will be placed."""

    text: str
    """In words."""
    problem: RecollectError | None = None
    """What keeps the cluster from working."""


def describe_placement(
    backend: BackendRef, work: Path, *, workers: int | None = None, threads: int | None = None
) -> WorkPlacement:
    """How a backend will place the work; a cluster is queried."""
    if backend.ray is None:
        trained = "as many as a short trial finds fastest" if workers is None else str(workers)
        scored = f"{workers or 1} worker process{'es' * ((workers or 1) > 1)}"
        return WorkPlacement(text=f"This machine does the work: {scored} for scoring, {trained} for training")
    cluster = backend.open_cluster(work, workers=workers, threads=threads)
    reports, count = cluster.inspect(), cluster.count_workers()
    requested = ", ".join(f"{amount:g} {name}" for name, amount in cluster.resources.items())
    problem = next((found for report in reports if (found := report.find_problem(cluster.work_folder))), None)
    return WorkPlacement(
        text=f"The Ray cluster at {cluster.address} does the work: {count} worker{'s' * (count != 1)} of {requested} "
        f"with {cluster.threads} thread{'s' * (cluster.threads > 1)}, on {len(reports)} nodes",
        problem=problem,
    )


def close_backends() -> None:
    """Leave the cluster that this process is connected to, if it is."""
    if module := sys.modules.get("recollect.execution.on_ray"):
        module.disconnect()
