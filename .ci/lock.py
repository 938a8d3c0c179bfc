"""Write requirements.lock: the versions of constraints.txt with the SHA-256 of every file that the index has of them.

`pip install --require-hashes --no-deps -r requirements.lock && pip install --no-deps .` then installs nothing else.
"""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

from pip._internal.models.index import PyPI

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r'href="[^"]*/([^"/#]+)#sha256=([0-9a-f]{64})"')


def find_hashes(name: str, version: str) -> list[str]:
    """The SHA-256 of all files of one version of a package."""
    with urllib.request.urlopen(f"{PyPI.simple_url}/{re.sub('[-_.]+', '-', name).lower()}/", timeout=60) as page:  # noqa: S310
        links = LINK.findall(page.read().decode())
    ours = re.compile(
        rf"{re.sub('[-_.]+', '[-_.]+', name)}-{re.escape(version)}(-.*\.whl|\.tar\.gz|\.zip)", re.IGNORECASE
    )
    return sorted({digest for file, digest in links if ours.fullmatch(file)})


def main() -> None:
    """Write the file."""
    lines = []
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        requirement = line.partition("#")[0].strip()
        if not requirement:
            continue
        name, _, version = requirement.partition("==")
        hashes = find_hashes(name, version)
        if not hashes:
            raise SystemExit(f"the index has no file of {requirement}")
        lines.append(" \\\n".join([requirement, *(f"    --hash=sha256:{digest}" for digest in hashes)]))
    (ROOT / "requirements.lock").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
