"""The local backend: ordered, lazy, never losing an item, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from workloads import surroundings, troubled, who

from recollect.execution.backend import Done, Failure, attempt
from recollect.execution.local import LocalBackend
from recollect.execution.threads import divide_threads, set_environment, thread_variables, use_threads
from recollect.testing.refusals import refused


def test_a_worker_that_dies_is_a_failure_that_says_so_and_the_others_continue():
    items = ["a", "dies", "b", "leaves", "c", "ends", "d"]
    outcomes = list(LocalBackend(workers=2).map(troubled, items))
    assert [type(outcome) for outcome in outcomes] == [Done, Failure, Done, Failure, Done, Failure, Done]
    assert [outcomes[i].error.code for i in (1, 3)] == ["worker_died", "worker_died"]
    assert "was ended by signal 9 (Killed) while it worked on item 1" in str(outcomes[1].error)
    assert "ended with status 7 while it worked on item 3" in str(outcomes[3].error)
    assert isinstance(outcomes[5].error, EOFError)
    assert outcomes[-1] == Done("d!")


def test_a_worker_that_dies_on_the_last_item_is_a_failure_too():
    first, last = LocalBackend(workers=2).map(troubled, ["a", "dies"])
    assert first == Done("a!")
    assert last.error.code == "worker_died"


def test_one_worker_is_this_process_and_several_are_others_that_stay():
    assert {outcome.value for outcome in LocalBackend().map(who, range(3))} == {os.getpid()}
    pids = {outcome.value for outcome in LocalBackend(workers=2).map(who, range(20))}
    assert os.getpid() not in pids
    assert len(pids) <= 2


def test_abandoning_the_outcomes_ends_the_workers():
    outcomes = LocalBackend(workers=2).map(who, iter(range(100)))
    pid = next(outcomes).value
    outcomes.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_one_worker_computes_with_its_threads_for_the_time_of_the_work():
    import torch

    before = torch.get_num_threads()
    (outcome,) = LocalBackend(threads=before + 1).map(surroundings, [0])
    assert outcome.value == (str(before + 1), before + 1, "true")
    assert torch.get_num_threads() == before


def test_threads_are_divided_among_workers_within_what_the_user_allows():
    with set_environment({"OMP_NUM_THREADS": "1"}):
        assert divide_threads(1) == 1
    with set_environment({"OMP_NUM_THREADS": ""}):
        cores = len(os.sched_getaffinity(0))
        assert [divide_threads(workers) for workers in (1, 2, 10 * cores)] == [cores, max(1, cores // 2), 1]
        assert LocalBackend(workers=2).threads == max(1, cores // 2)


def test_the_environment_is_as_before_afterwards(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("RAYON_NUM_THREADS", raising=False)
    with use_threads(3):
        assert {name: os.environ[name] for name in thread_variables(3)} == thread_variables(3)
    assert os.environ["OMP_NUM_THREADS"] == "5"
    assert "RAYON_NUM_THREADS" not in os.environ


def test_impossible_numbers_of_workers_and_threads_are_refused():
    with refused("out_of_range"):
        LocalBackend(workers=0)
    with refused("out_of_range"):
        LocalBackend(threads=-1)


def test_an_attempt_lets_an_interruption_through():
    def interrupted(item):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(interrupted, 0)


SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from recollect.execution.local import LocalBackend

# whoever starts the tests in the background has told them, and so this script, to ignore interruptions
signal.signal(signal.SIGINT, signal.default_int_handler)

def linger(folder):
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(300)

{main}
"""


def _started(folder: Path, main: str) -> subprocess.Popen:
    script = folder / "script.py"
    script.write_text(SCRIPT.format(main=main))
    command = [sys.executable, script]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)  # noqa: S603 - our own


PATIENCE = 60
"""Seconds after which something hangs: a fifth of the time that a worker would linger, whatever else runs here."""


def _workers_of(folder: Path) -> list[int]:
    deadline = time.monotonic() + PATIENCE
    while len(pids := [int(path.name) for path in folder.iterdir() if path.name.isdigit()]) < 2:
        assert time.monotonic() < deadline, "the workers never began"
        time.sleep(0.02)
    return pids


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_promptly_with_an_interrupted_or_killed_parent(tmp_path, how):
    main = f"if __name__ == '__main__':\n    list(LocalBackend(workers=2).map(linger, [{str(tmp_path)!r}] * 2))"
    parent = _started(tmp_path, main)
    pids = _workers_of(tmp_path)
    if how == signal.SIGINT:  # as a terminal does: to the whole group
        os.killpg(parent.pid, how)
    else:
        parent.kill()
    said = parent.communicate(timeout=PATIENCE)[1]
    assert all(_gone(pid) for pid in pids)
    assert said.count("Traceback") == (1 if how == signal.SIGINT else 0), "workers keep quiet"


def test_a_script_that_starts_workers_without_a_guard_is_reported_so(tmp_path):
    parent = _started(tmp_path, f"list(LocalBackend(workers=2).map(linger, [{str(tmp_path)!r}] * 2))")
    said = parent.communicate(timeout=PATIENCE)[1]
    assert parent.returncode == 1
    assert "A worker process ended with status 1 before it could begin." in said
    assert "if __name__ == '__main__':" in said
    assert "process object is closed" not in said
