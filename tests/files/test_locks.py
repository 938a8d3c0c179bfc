"""Locks: the second run waits and is told; a link in the lock's place is refused and its target left alone."""

from __future__ import annotations

import os

from recollect.files import hold_lock
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
    living = tmp_path / f".a.json.{os.getpid()}-0a1b2c3d.part"
    dead, old = tmp_path / ".a.json.4194304-0a1b2c3d.part", tmp_path / ".a.json.0a1b2c3d.part"
    for path in (living, dead, old):
        path.write_text("half of a private text")
    with hold_lock(tmp_path):
        assert living.exists()
        assert not dead.exists()
        assert not old.exists()
