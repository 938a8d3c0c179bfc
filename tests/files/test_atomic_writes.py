"""Private files: owner-only, and whole or not at all."""

from __future__ import annotations

import stat
import threading

import pytest

from recollect.files import fill_folder, make_private_folder, read_json, write_atomically, write_json


def test_new_folders_are_readable_by_their_owner_only(tmp_path):
    folder = make_private_folder(tmp_path / "a" / "b")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)] == [0o700, 0o700]


def test_a_folder_that_was_there_keeps_its_permissions(tmp_path):
    (tmp_path / "a").mkdir(mode=0o755)
    (tmp_path / "a").chmod(0o755)
    assert stat.S_IMODE(make_private_folder(tmp_path / "a").stat().st_mode) == 0o755


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "value.json"
    write_json(path, {"a": 1})

    def fail_half_way() -> None:
        with write_atomically(path) as part:
            part.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert read_json(path) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["value.json"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_writers_at_once_leave_one_whole_file(tmp_path):
    path = tmp_path / "value.json"
    values = [{"who": who, "filling": "x" * 50_000} for who in range(8)]
    threads = [threading.Thread(target=write_json, args=(path, value)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_json(path) in values
    assert [p.name for p in tmp_path.iterdir()] == ["value.json"]


def test_a_number_that_json_does_not_have_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "value.json", float("nan"))
    assert not list(tmp_path.iterdir())


def test_a_folder_is_filled_with_whole_private_files_or_not_at_all(tmp_path):
    (tmp_path / "model.json").write_text("old")

    def fill(last: str) -> None:
        with fill_folder(tmp_path) as parts:
            (parts / "model.json").write_text("new")
            (parts / "model.json").chmod(0o666)
            assert stat.S_IMODE(parts.stat().st_mode) == 0o700
            (parts / last).write_text("new")

    with pytest.raises(FileNotFoundError):
        fill("no/such/folder")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"model.json": "old"}
    fill("tokenizer.json")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "model.json": "new",
        "tokenizer.json": "new",
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
