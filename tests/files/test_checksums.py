"""Checksums: a changed number in a JSON file is noticed, and so is every difference between a folder and its list."""

from __future__ import annotations

import hashlib
import json

from recollect.errors import StoreError
from recollect.files import (
    compute_sha256,
    find_faults,
    read_checked_json,
    read_folder_manifest,
    write_checked_json,
    write_folder_manifest,
)
from recollect.testing.refusals import refused


def read(path):
    return read_checked_json(path, do="Delete it.", code="damaged")


def test_every_flipped_bit_is_refused_or_changes_nothing(tmp_path):
    path, value = tmp_path / "a.json", {"low": 3.25, "high": 17, "name": "Zoë"}
    write_checked_json(path, value)
    assert read(path) == value
    data, noticed = path.read_bytes(), 0
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            found = read(path)
        except StoreError:
            noticed += 1
        else:
            # the name of the checksum itself: what reads the file does not know the new name, and refuses it
            assert found == value or "checksum" not in json.loads(flipped)
            assert {name: found.get(name) for name in value} == value
    assert noticed > 0.9 * 8 * len(data) - 8 * len("checksum")


def test_a_file_of_an_older_version_is_read_without_a_checksum(tmp_path):
    (tmp_path / "a.json").write_text('{"low": 3}')
    assert read(tmp_path / "a.json") == {"low": 3}
    (tmp_path / "a.json").write_text("[3]")
    with refused("damaged"):
        read(tmp_path / "a.json")


def test_a_list_of_files_tells_what_is_damaged_missing_and_extra(tmp_path):
    for name in ("a.txt", "b.txt", "deep/c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / ".lock").touch()
    write_folder_manifest(tmp_path, "list.json", {"format": 1})
    files = read_folder_manifest(tmp_path, "list.json")["files"]
    assert files["deep/c.txt"] == {"sha256": hashlib.sha256(b"deep/c.txt").hexdigest(), "bytes": 10}
    assert compute_sha256(tmp_path / "a.txt") == files["a.txt"]["sha256"]
    assert find_faults(tmp_path, files, ignore=["list.json"]) == []
    (tmp_path / "a.txt").write_text("A.txt")
    (tmp_path / "b.txt").unlink()
    (tmp_path / "deep" / "new.txt").touch()
    found = {(each.path.name, each.problem) for each in find_faults(tmp_path, files, ignore=["list.json"])}
    assert found == {("a.txt", "damaged"), ("b.txt", "missing"), ("new.txt", "extra")}


def test_a_list_that_is_damaged_or_absent_is_refused(tmp_path):
    with refused("no_manifest"):
        read_folder_manifest(tmp_path, "list.json")
    write_checked_json(tmp_path / "list.json", {"files": {"a": 1}})
    with refused("manifest_damaged"):
        read_folder_manifest(tmp_path, "list.json")
