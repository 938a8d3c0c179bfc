"""A journal: entries survive a kill, a torn tail is dropped, damage and a second writer are refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import StoreError
from recollect.files import Journal
from recollect.testing.refusals import refused

ENTRIES = [b"one", b"", b"three" * 50, b"4"]


def write(path, entries, owner="a"):
    with Journal.open(path, owner=owner) as journal:
        list(journal)
        for entry in entries:
            journal.append(entry)


def read(path, owner="a"):
    with Journal.open(path, owner=owner) as journal:
        return list(journal)


def test_entries_come_back_in_order_and_more_are_added(tmp_path):
    path = tmp_path / "j"
    write(path, ENTRIES)
    write(path, [b"five"])
    assert read(path) == [*ENTRIES, b"five"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_journal_cut_off_anywhere_keeps_the_entries_before(tmp_path):
    path = tmp_path / "j"
    write(path, ENTRIES)
    whole = path.read_bytes()
    for size in range(36, len(whole)):
        path.write_bytes(whole[:size])
        kept = read(path)
        assert kept == ENTRIES[: len(kept)]
        write(path, [b"new"])
        assert read(path) == [*kept, b"new"]
    path.write_bytes(whole)
    assert read(path) == ENTRIES


@given(where=st.integers(36, 10**6), bit=st.integers(0, 7))
@settings(deadline=None, max_examples=150)
def test_a_flipped_bit_is_refused_or_costs_the_last_entry_and_never_gives_another_one(tmp_path_factory, where, bit):
    path = tmp_path_factory.mktemp("flip") / "j"
    write(path, ENTRIES)
    data = bytearray(path.read_bytes())
    data[36 + where % (len(data) - 36)] ^= 1 << bit
    path.write_bytes(data)
    kept = []
    with suppress(StoreError), Journal.open(path, owner="a") as journal:
        kept.extend(journal)
    assert kept == ENTRIES[: len(kept)]


def test_zeros_appended_by_a_crash_of_the_machine_are_dropped_or_refused(tmp_path):
    path = tmp_path / "j"
    write(path, ENTRIES)
    with path.open("ab") as file:
        file.write(bytes(80))
    with refused("journal_damaged"):
        read(path)


def test_a_journal_of_another_owner_is_begun_anew(tmp_path):
    write(tmp_path / "j", ENTRIES)
    assert read(tmp_path / "j", owner="b") == []


def test_only_the_first_entries_are_kept(tmp_path):
    path = tmp_path / "j"
    write(path, ENTRIES)
    with Journal.open(path, owner="a") as journal:
        journal.keep_first(2)
        assert list(journal) == ENTRIES[:2]
        journal.append(b"x")
    assert read(path) == [*ENTRIES[:2], b"x"]


def test_a_second_writer_is_refused(tmp_path):
    with Journal.open(tmp_path / "j", owner="a"), refused("journal_in_use"), Journal.open(tmp_path / "j", owner="a"):
        pass


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "j").symlink_to(tmp_path / "victim")
    with refused("journal_not_a_file"), Journal.open(tmp_path / "j", owner="a"):
        pass
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_hard_link_a_pipe_and_a_file_of_another_kind_are_refused_and_never_emptied(tmp_path):
    (tmp_path / "victim").write_text("precious")
    os.link(tmp_path / "victim", tmp_path / "j")
    os.mkfifo(tmp_path / "pipe")
    for name, code in (("j", "journal_not_a_file"), ("pipe", "journal_not_a_file"), ("victim", "journal_damaged")):
        if name == "victim":
            (tmp_path / "j").unlink()
        with refused(code), Journal.open(tmp_path / name, owner="a"):
            pass
        with refused(code):
            Journal.verify(tmp_path / name)
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_killed_writer_loses_no_entry_that_was_appended(tmp_path):
    code = (
        "import sys, itertools; from pathlib import Path; from recollect.files import Journal\n"
        "with Journal.open(Path(sys.argv[1]), owner='a') as journal:\n"
        "    for i in itertools.count():\n"
        "        journal.append(str(i).encode() * 100); print(i, flush=True)\n"
    )
    writer = subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-c", code, tmp_path / "j"], stdout=subprocess.PIPE, text=True
    )
    seen = [writer.stdout.readline() for _ in range(200)]
    os.kill(writer.pid, signal.SIGKILL)
    seen += writer.stdout.read().splitlines()
    writer.wait()
    kept = read(tmp_path / "j")
    assert len(kept) >= int(seen[-1]) + 1
    assert kept == [str(i).encode() * 100 for i in range(len(kept))]


def test_a_full_disk_is_one_refusal_and_what_was_whole_stays_whole(tmp_path):
    code = (
        "import resource, sys; from pathlib import Path; from recollect.errors import StoreError\n"
        "from recollect.files import Journal\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    with Journal.open(Path(sys.argv[1]), owner='a') as journal:\n"
        "        while True: journal.append(b'x' * 300)\n"
        "except StoreError as error: sys.exit(error.code)\n"
    )
    command = [sys.executable, "-c", code, tmp_path / "j"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own code
    assert done.stderr.strip() == "disk_full"
    assert read(tmp_path / "j") == [b"x" * 300] * 2


@pytest.mark.parametrize("length", [2**62, 2**41])
def test_an_absurd_length_is_damage_and_no_memory_is_taken_for_it(tmp_path, length):
    path = tmp_path / "j"
    write(path, ENTRIES)
    data = bytearray(path.read_bytes())
    data[36:44] = length.to_bytes(8, "little")
    path.write_bytes(data)
    with refused("journal_damaged"):
        read(path)
