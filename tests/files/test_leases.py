"""Leases: one driver in a folder at a time, without locks of files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from recollect.errors import RecollectWarning, StoreError
from recollect.files import hold_lease, hold_lock, leases, leave_locks_to_driver
from recollect.files.journal import Journal
from recollect.testing.refusals import refused

HOLDER = """
import sys, time
from pathlib import Path
from recollect.files import hold_lease, leases
leases.BEAT_SECONDS = 0.1
with hold_lease(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def start_holder(folder, seconds: float) -> subprocess.Popen:
    holder = subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-c", HOLDER, str(folder), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    return holder


def test_the_second_driver_waits_until_the_first_has_ended(tmp_path):
    holder = start_holder(tmp_path, 1.0)
    with pytest.warns(RecollectWarning, match="waiting"), hold_lease(tmp_path):  # noqa: PT031 - as long as it is held
        assert holder.wait(timeout=30) == 0
        assert json.loads((tmp_path / leases.LEASE).read_text())["process"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_the_lease_of_a_dead_process_of_this_machine_is_taken_over_at_once(tmp_path):
    holder = start_holder(tmp_path, 300)
    holder.kill()
    holder.wait()
    began = time.monotonic()
    with hold_lease(tmp_path):
        assert time.monotonic() - began < leases.PATIENCE_SECONDS / 2
    assert list(tmp_path.iterdir()) == []


def test_the_lease_of_another_machine_is_taken_over_once_its_count_stands_still(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "PATIENCE_SECONDS", 1.5)
    elsewhere = {"token": "x", "host": "another-machine", "process": 1, "beats": 0}
    lease, stop = tmp_path / leases.LEASE, time.monotonic() + 1.0
    lease.write_text(json.dumps(elsewhere))

    def live_on():
        while time.monotonic() < stop:
            elsewhere["beats"] += 1
            lease.write_text(json.dumps(elsewhere))
            time.sleep(0.1)

    threading.Thread(target=live_on).start()
    with pytest.warns(RecollectWarning), hold_lease(tmp_path):
        assert time.monotonic() > stop + 1.0, "a holder that counts up is alive"


def test_a_lease_can_be_held_again_within_and_ends_with_the_outer_one(tmp_path):
    with hold_lease(tmp_path):
        with hold_lease(tmp_path):
            pass
        assert (tmp_path / leases.LEASE).exists()
    assert not (tmp_path / leases.LEASE).exists()


def test_a_lease_that_was_taken_over_meanwhile_is_an_error_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.05)

    def lose():
        with hold_lease(tmp_path):
            (tmp_path / leases.LEASE).write_text(json.dumps({"token": "another"}))
            time.sleep(0.5)

    with refused("lease_lost"):
        lose()
    assert json.loads((tmp_path / leases.LEASE).read_text()) == {"token": "another"}, "it stays the other's"


def test_workers_of_a_cluster_leave_locks_to_their_driver(tmp_path):
    with hold_lock(tmp_path), Journal.open(tmp_path / "journal", owner="a") as journal:
        journal.append(b"1")
        with leave_locks_to_driver(), hold_lock(tmp_path) as waited:
            assert not waited
            with Journal.open(tmp_path / "journal", owner="a") as again:
                assert list(again) == [b"1"]
        with pytest.raises(StoreError), Journal.open(tmp_path / "journal", owner="a"):
            pass
