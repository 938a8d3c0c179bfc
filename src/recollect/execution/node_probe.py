"""What a node of a cluster says of itself before it is given work.

It is sent to nodes as it is, by value, because a node without this package must be able to answer, too: nothing here
may import anything but the standard library.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import time
from pathlib import Path
from typing import Any


def describe_node(token: str | None, secret: str, packages: tuple[str, ...]) -> dict[str, Any]:
    """Versions, clock, and whether this node sees the folder of the driver.

    Args:
        token: A file that the driver wrote into the work folder; None if there is no such folder.
        secret: What is in it.
        packages: Whose versions are wanted.
    """
    return {
        "python": platform.python_version(),
        "packages": {name: _find_version(name) for name in packages},
        "folder": "" if token is None else prove_folder(token, secret),
        "time": time.time(),
        "cores": os.cpu_count(),
    }


def prove_folder(token: str, secret: str) -> str:
    """On a probed node: read what the driver wrote and write an answer beside it; what is wrong with the folder."""
    path, deadline = Path(token), time.monotonic() + 5
    while not path.is_file() and time.monotonic() < deadline:
        time.sleep(0.2)  # file systems over the network show new files a little later
    if not path.parents[1].is_dir():
        return "there is no such folder there"
    if not path.is_file() or path.read_text(encoding="utf-8") != secret:
        return "another folder is in its place there"
    try:
        answer = path.with_name(f"{path.name}.{os.getpid()}")
        answer.write_text(secret, encoding="utf-8")
        answer.unlink()
    except OSError as error:
        return f"it cannot be written there ({error.strerror})"
    return ""


def _find_version(package: str) -> str | None:
    """The version of a package; ours by its own word, because what is shipped to a node has no metadata there."""
    if package == "recollect":
        try:
            return str(importlib.import_module("recollect.version").__version__)
        except (ImportError, AttributeError):
            return None
    try:
        return importlib.metadata.version(package)  # importing it, torch for instance, would take long
    except importlib.metadata.PackageNotFoundError:
        return None
