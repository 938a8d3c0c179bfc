"""Locks: the second run waits and is told; a link in the lock's place is refused and its target left alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings

from recollect.files import atomic_writes, hold_lock, refuse_use, use_folder
from recollect.testing.refusals import refused


def test_a_lock_that_is_a_link_is_refused_and_its_target_is_left_alone(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".lock").symlink_to(victim)
    with refused("lock_not_a_file"), hold_lock(tmp_path / "work"):
        pass
    assert victim.read_text() == "precious"


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / ".lock")
    with refused("lock_not_a_file"), hold_lock(tmp_path):
        pass


def test_a_lock_is_made_for_its_owner_only_and_nobody_waited(tmp_path):
    with hold_lock(tmp_path / "new") as waited:
        assert not waited
    assert (tmp_path / "new" / ".lock").stat().st_mode & 0o777 == 0o600


def test_leftovers_of_dead_writers_go_and_those_of_living_ones_stay(tmp_path):
    living = tmp_path / f".a.json.{os.getpid()}-{atomic_writes._MACHINE}2c3d.part"
    dead, old = tmp_path / f".a.json.4194304-{atomic_writes._MACHINE}2c3d.part", tmp_path / ".a.json.0a1b2c3d.part"
    for path in (living, dead, old):
        path.write_text("half of a private text")
    with hold_lock(tmp_path):
        assert living.exists()
        assert not dead.exists()
        assert not old.exists()


def test_a_temporary_lock_leaves_neither_a_file_nor_an_empty_folder(tmp_path):
    with hold_lock(tmp_path / "empty", temporary=True):
        assert (tmp_path / "empty" / ".lock").exists()
    assert not (tmp_path / "empty").exists()
    with hold_lock(tmp_path / "full", temporary=True):
        (tmp_path / "full" / "kept").touch()
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["kept"]


def test_many_that_lock_a_folder_which_comes_and_goes_are_never_in_it_together(tmp_path):
    inside, most, turns = [0], [0], [0]

    def enter() -> None:
        for _ in range(50):
            with hold_lock(tmp_path / "busy", temporary=True):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                turns[0] += 1
                inside[0] -= 1

    threads = [threading.Thread(target=enter) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (most[0], turns[0]) == (1, 200)
    assert not (tmp_path / "busy").exists()


def test_hidden_files_of_other_programs_and_of_other_machines_stay(tmp_path):
    others = tmp_path / ".download.part", tmp_path / ".a.json.4194304-zz00aaaa.part"
    elsewhere = "0000" if atomic_writes._MACHINE != "0000" else "ffff"
    writing = tmp_path / f".a.json.4194304-{elsewhere}0a1b.part"
    for path in (*others, writing):
        path.touch()
    with hold_lock(tmp_path, temporary=True):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in (*others, writing)}
    os.utime(writing, (0, 0))
    with hold_lock(tmp_path):
        assert not writing.exists()


def test_a_folder_that_a_dead_writer_was_filling_goes(tmp_path):
    left = tmp_path / f".scratch.4194304-{atomic_writes._MACHINE}0a1b.part"
    left.mkdir()
    (left / "tokenizer.json").write_text("words of a private text")
    with hold_lock(tmp_path):
        assert not left.exists()


def test_a_folder_in_which_nothing_was_made_goes_with_the_last_who_uses_it(tmp_path):
    with use_folder(tmp_path / "work"):
        with use_folder(tmp_path / "work"):
            pass
        assert [path.name for path in (tmp_path / "work").iterdir()] == [".lock"]
        with refused("work_in_use"), refuse_use(tmp_path / "work"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_users_of_a_folder_and_who_deletes_from_it_are_never_in_it_together(tmp_path):
    """Three use it again and again, and one empties it: no user misses what it made."""
    code = (
        "import sys, pathlib, random, recollect.files as f\n"
        "work, name = pathlib.Path(sys.argv[1]), sys.argv[2]\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "for i in range(150):\n"
        "    if name == 'delete':\n"
        "        try:\n"
        "            with f.refuse_use(work):\n"
        "                [path.unlink() for path in work.glob('[!.]*')]\n"
        "        except f.locks.StoreError: pass\n"
        "    else:\n"
        "        with f.use_folder(work):\n"
        "            (work / name).touch(); assert (work / name).exists(); (work / name).unlink()\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "work"), name], stderr=subprocess.PIPE)  # noqa: S603
        for name in ("a", "b", "c", "delete")
    ]
    assert [(each.communicate(timeout=60)[1], each.returncode) for each in started] == [(b"", 0)] * 4
    assert not (tmp_path / "work").exists()
