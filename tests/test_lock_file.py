"""The lock file: the very versions of constraints.txt, each with hashes."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_lock_file_has_the_versions_of_the_constraints_and_a_hash_of_each():
    wanted = [line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines()]
    entries = re.split(r"(?<!\\)\n", (ROOT / "requirements.lock").read_text().strip())
    assert [entry.split(" ")[0] for entry in entries] == list(filter(None, wanted)), "run .ci/lock.py"
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
