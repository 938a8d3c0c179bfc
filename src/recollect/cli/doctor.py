"""`recollect doctor`: what this machine has, what is missing, and the command that adds it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from recollect.cli import console
from recollect.cli.components import find_broken_plugins
from recollect.cli.exit_status import COULD_NOT
from recollect.cli.shared_options import BackendName, Work
from recollect.execution.cluster_nodes import MAX_CLOCK_SECONDS, NodeReport
from recollect.execution.cluster_nodes import PACKAGES as PROBED
from recollect.version import __version__

PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "pyarrow", "numpy", "scipy", "scikit-learn", "opacus")
EXTRAS = {"peft": "LoRA adapters (BASE+ADAPTER)", "ray": "work on a Ray cluster (--backend ray)"}


def doctor(
    backend: BackendName = None,
    work: Work = Path(".recollect"),
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON on standard output.")] = False,
) -> None:
    """Show versions, devices, threads and disk, which extras are missing, and which plug-ins are broken.

    With --backend, try the cluster: the package, the work folder, devices and clock of every node.

    `recollect doctor --backend ray --work /shared/recollect`
    """
    import platform

    if backend not in (None, "local"):
        _diagnose_cluster(backend or "", work, as_json=json)
        return

    found: dict[str, Any] = {
        "recollect": __version__,
        "python": platform.python_version(),
        "packages": {name: _get_version(name) for name in PACKAGES},
        "device": _get_default_device(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "free_disk_gb": round(shutil.disk_usage(Path.cwd()).free / 1e9, 1),
        "missing_extras": {name: f"pip install 'recollect[{name}]'" for name in EXTRAS if not _is_importable(name)},
        "broken_plugins": find_broken_plugins(),
    }
    if json:
        console.print_json(found)
        return
    console.print_table("This machine", ["what", "found"], _build_doctor_machine_rows(found))


def _diagnose_cluster(name: str, work: Path, *, as_json: bool) -> None:
    """For the doctor: show what every node of a cluster reports; status 2 if one of them could not work."""
    from dataclasses import asdict

    from recollect.pipeline.plans.backends import BackendRef, parse_backend

    cluster = (parse_backend(name) or BackendRef()).open_cluster(work)
    with console.show_stages() as progress:
        progress("asking the nodes", 0, None)
        reports, workers = cluster.inspect(), cluster.count_workers()
    problems = {each.name: each.find_problem(cluster.work_folder) for each in reports}
    if as_json:
        nodes = [{**asdict(each), "problem": str(problems[each.name] or "")} for each in reports]
        console.print_json({"nodes": nodes, "workers": workers})
    else:
        headings = ["node", "CPUs", "GPUs", "memory", *PROBED, "work folder", "clock"]
        console.print_table(
            f"{workers} workers have room", headings, [_build_doctor_node_row(each) for each in reports]
        )
    for problem in filter(None, problems.values()):
        console.say(str(problem))
    if any(problems.values()):
        raise typer.Exit(COULD_NOT)


def _build_doctor_node_row(report: NodeReport) -> list[str]:
    """A node of a cluster as a row of the doctor's table."""
    has = report.resources
    clock = "" if abs(report.clock_seconds) < MAX_CLOCK_SECONDS else f"{report.clock_seconds:+.0f} s"
    return [
        report.name,
        f"{has.get('CPU', 0):g}",
        f"{has.get('GPU', 0):g}",
        f"{has.get('memory', 0) / 1e9:.0f} GB",
        *(report.versions.get(name) or "MISSING" for name in PROBED),
        report.folder or report.error or "seen",
        clock or "as here",
    ]


def _build_doctor_machine_rows(found: dict[str, Any]) -> list[list[str]]:
    """What this machine has, as rows of the doctor's table."""
    plain = {name: value for name, value in found.items() if not isinstance(value, dict)}
    rows = [[name.replace("_", " "), str(value)] for name, value in plain.items()]
    rows += [[name, version] for name, version in found["packages"].items()]
    for name, use in EXTRAS.items():
        command = found["missing_extras"].get(name)
        rows.append(
            [f"extra: {name}", f"missing, for {use}; add it with: {command}" if command else f"there, for {use}"]
        )
    return rows + [[f"plug-in: {name}", f"BROKEN: {fault}"] for name, fault in found["broken_plugins"].items()]


def _get_version(package: str) -> str:
    """The version of a package on this machine, for the doctor."""
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "MISSING: reinstall recollect"


def _is_importable(module: str) -> bool:
    """Whether a module can be imported on this machine, for the doctor."""
    import importlib.util

    return importlib.util.find_spec(module) is not None


def _get_default_device() -> str:
    """The device on which models run unless set otherwise, for the doctor."""
    from recollect.models.loading.devices import describe_device

    return describe_device()
