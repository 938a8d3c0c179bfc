"""Nodes of a cluster: what each says of itself, and what keeps it from working for us."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from recollect.errors import RecollectError
from recollect.files import make_private_folder, make_scratch_folder, write_text
from recollect.version import __version__

PACKAGES: Final = ("recollect", "torch", "transformers", "ray")
"""Whose versions every node is asked for; only the first must be the same as here."""
SILENT: Final = "node_silent"
"""The code of the error of a node that gave no answer."""
MAX_CLOCK_SECONDS: Final = 60.0
"""How far the clock of a node may be off before `doctor` says so: nothing of ours depends on it, but logs do."""


@dataclass(frozen=True, kw_only=True)
class NodeReport:
    """What a node says of itself."""

    name: str
    """Its host, its address and the beginning of its id."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """What it has to give, by Ray's names: CPU, GPU, memory."""
    versions: Mapping[str, str | None] = field(default_factory=dict)
    python: str = ""
    folder: str = ""
    """What is wrong with the work folder as this node sees it; empty if nothing is."""
    clock_seconds: float = 0.0
    """How much its clock is ahead of the clock here."""
    error: str = ""
    """Why it gave no answer, if it gave none."""

    def find_problem(self, work: Path | None) -> RecollectError | None:
        """What keeps this node from working for us."""
        found = self.versions.get("recollect")
        if self.error:
            return RecollectError(
                f"Node {self.name} gave no answer: {self.error}",
                do="Look at its logs (/tmp/ray/session_latest/logs), or remove it from the cluster.",
                code=SILENT,
            )
        if found is None:
            return RecollectError(
                f"Node {self.name} does not have recollect.",
                do=f"Install it there (`pip install 'recollect[ray]=={__version__}'`), or let it be sent with "
                "`backend: {ray: {ship: true}}`.",
                code="package_missing_on_node",
            )
        if found != __version__:
            return RecollectError(
                f"Node {self.name} has recollect {found}; here it is {__version__}.",
                do=f"Install the same there: `pip install 'recollect[ray]=={__version__}'`.",
                code="other_version_on_node",
            )
        return build_folder_error(self.name, self.folder, work) if self.folder else None


def refuse_client_address(address: str) -> None:
    """Refuse an address of Ray Client for a cluster: paths and the loss of the driver mean something else there."""
    if address.startswith("ray://"):
        host = address.removeprefix("ray://").partition(":")[0] or "HEAD"
        raise RecollectError(
            f"{address} is a Ray Client address: paths would be those of this machine, and the loss of the connection "
            "would end the run.",
            do="Run it on a node of the cluster: "
            f"`ray job submit --address http://{host}:8265 -- recollect run PLAN --backend ray`.",
            code="ray_client",
        )


def build_folder_error(node: str, problem: str, work: Path | None) -> RecollectError:
    """The error for a cluster's node that does not see the work folder."""
    return RecollectError(
        f"Node {node} does not see the work folder '{work}': {problem}.",
        do="Mount the same folder at the same path on every node (NFS, Lustre, EFS, a ReadWriteMany volume), or choose "
        "one that all nodes see with --work (`work:` in the plan).",
        code="work_folder_not_shared",
    )


def read_node_report(
    name: str, resources: Mapping[str, float], report: Any, *, between: tuple[float, float]
) -> NodeReport:
    """The report of a node from what its probe gave: a mapping, or the error that it ended with.

    Args:
        name: The name of the node.
        resources: What it has to give.
        report: What its probe gave.
        between: When it was asked and had answered, by the clock here: its own time should be between.
    """
    kept = {key: value for key, value in resources.items() if key in ("CPU", "GPU", "memory")}
    if isinstance(report, BaseException):
        return NodeReport(name=name, resources=kept, error=f"{report}".strip().splitlines()[0])
    return NodeReport(
        name=name,
        resources=kept,
        versions=report["packages"],
        python=report["python"],
        folder=report["folder"],
        clock_seconds=round(min(0.0, report["time"] - between[0]) + max(0.0, report["time"] - between[1]), 1),
    )


def count_slots(nodes: Sequence[Mapping[str, float]], requested: Mapping[str, float]) -> int:
    """How many workers that ask so much fit on nodes that have so much.

    >>> count_slots([{"CPU": 4}, {"CPU": 3, "GPU": 1}], {"CPU": 2})
    3
    >>> count_slots([{"CPU": 4}], {"CPU": 1, "GPU": 1})
    0
    """
    if not requested:
        return len(nodes)
    return sum(min(int(node.get(name, 0) // amount) for name, amount in requested.items()) for node in nodes)


@contextmanager
def write_node_token(work: Path | None) -> Iterator[tuple[str, str] | None]:
    """A file in the work folder that every node must be able to read, for the time of the block; and its content."""
    if work is None:
        yield None
        return
    was_there = work.exists()
    try:
        # what a driver that was killed left is removed by the next
        with make_scratch_folder(make_private_folder(work.absolute())) as scratch:
            path, secret = scratch / "token", secrets.token_hex(16)
            write_text(path, secret)
            yield str(path), secret
    finally:
        if not was_there:
            with suppress(OSError):  # by now there is something in it
                work.rmdir()


def get_work_folder(token: tuple[str, str]) -> Path:
    """The work folder that a token is in."""
    return Path(token[0]).parents[1]
