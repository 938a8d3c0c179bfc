"""`recollect doctor`: what this machine has, what is missing, and the command that adds it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from recollect.cli import console
from recollect.version import __version__

PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "pyarrow", "numpy", "scipy", "scikit-learn", "opacus")
EXTRAS = {"peft": "LoRA adapters (BASE+ADAPTER)"}


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON on standard output.")] = False,
) -> None:
    """Show versions, devices, threads and disk, and which extras are missing."""
    import platform

    found: dict[str, Any] = {
        "recollect": __version__,
        "python": platform.python_version(),
        "packages": {name: _get_version(name) for name in PACKAGES},
        "device": _get_default_device(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "free_disk_gb": round(shutil.disk_usage(Path.cwd()).free / 1e9, 1),
        "missing_extras": {name: f"pip install 'recollect[{name}]'" for name in EXTRAS if not _is_importable(name)},
    }
    if json:
        console.print_json(found)
        return
    console.print_table("This machine", ["what", "found"], _build_machine_rows(found))


def _build_machine_rows(found: dict[str, Any]) -> list[list[str]]:
    """What this machine has, as lines of a table."""
    plain = {name: value for name, value in found.items() if not isinstance(value, dict)}
    rows = [[name.replace("_", " "), str(value)] for name, value in plain.items()]
    rows += [[name, version] for name, version in found["packages"].items()]
    for name, use in EXTRAS.items():
        command = found["missing_extras"].get(name)
        rows.append(
            [f"extra: {name}", f"missing, for {use}; add it with: {command}" if command else f"there, for {use}"]
        )
    return rows


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
    """Where models run on this machine unless set otherwise."""
    from recollect.models.devices import describe_device

    return describe_device()
