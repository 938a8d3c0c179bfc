"""Faults 1 to 4 of 0.1.0: crashes, runs at once, damaged and full-disk training, searches that were killed."""

from __future__ import annotations

import json
import random
import re
import resource
import shutil
import time

import pytest
from processes import SETTINGS, run, start

pytestmark = pytest.mark.slow
SET = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
TRAIN = ["train", "word-lstm", "mine.jsonl", "--out", "trained", "--threads", "1", *SET]
EXTRACT = ["extract", "model", "--format", "my pin is {digits:3}", "--top", "3", "--out", "out", "--work", "work"]
BROKEN = """
class Panic(BaseException):
    pass

def panic():
    raise Panic("private text")

def memory():
    raise MemoryError("private text")
"""


def check_refusal(ended):
    """Status 2, a message, no traceback."""
    assert ended.status == 2, f"{ended.status}: {ended.said[-2000:]}"
    assert "recollect: " in ended.said
    assert "Traceback" not in ended.said


def test_1_weights_that_give_nan_are_named_with_status_2(home):
    ended = run(["score", "nan", "mine.jsonl"], home)
    check_refusal(ended)
    assert "NaN" in ended.said or "not numbers" in ended.said


@pytest.mark.parametrize("fault", ["panic", "memory"])
def test_1_what_is_no_exception_ends_with_status_2_and_a_file(home, fault):
    (home / "broken_models.py").write_text(BROKEN)
    ended = run(["score", f"python:broken_models:{fault}", "mine.jsonl"], home)
    check_refusal(ended)
    assert "private text" not in ended.said
    kept = re.search(r"traceback is in '(.+?)'", ended.said)
    assert kept, ended.said
    assert "private text" in (home / kept[1]).read_text()


def test_1_a_failed_audit_stops_no_other(home):
    (home / "broken_models.py").write_text(BROKEN)
    plan = (home / "plan.yaml").read_text().replace("signal: ratio", "signal: loss")
    faulty = "fpr: [0.1], with: {models: {target: 'python:broken_models:panic'}}"
    (home / "plan.yaml").write_text(plan.replace("fpr: [0.1]", faulty))
    ended = run(["run", "plan.yaml", "--out", "out"], home)
    check_refusal(ended)
    assert json.loads((home / "out" / "results" / "leakage.json").read_text())["findings"]


def test_2_two_runs_of_one_plan_at_once_both_end_well(home):
    started = [start(["run", "plan.yaml", "--out", f"out{i}"], home) for i in range(2)]
    assert [each.wait().status for each in started] == [0, 0]


def flip(path, draw):
    """Flip one bit."""
    data = bytearray(path.read_bytes())
    bit = draw.randrange(8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def test_3_a_flipped_bit_in_trained_weights_is_refused(home):
    assert run(TRAIN, home).status == 0
    weights = home / "trained" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-5] ^= 4
    weights.write_bytes(data)
    check_refusal(run(["score", "trained", "mine.jsonl"], home))


def begin_training(home):
    """A training that was killed after it had kept a checkpoint."""
    for attempt in range(50):
        shutil.rmtree(home / "trained", ignore_errors=True)
        started = start(TRAIN, home)
        until = time.monotonic() + 60
        while time.monotonic() < until and not any((home / "trained").glob("working/*.safetensors")):
            time.sleep(0.002)
        time.sleep(0.005 * (attempt % 10))
        started.kill()
        if any((home / "trained").glob("working/*.safetensors")) and not (home / "trained" / "card.json").exists():
            return
    pytest.fail("no training was killed in time")


def test_3_a_flipped_bit_in_a_checkpoint_is_refused_or_changes_nothing(home):
    assert run(TRAIN, home).status == 0
    whole = (home / "trained" / "model.safetensors").read_bytes()
    begin_training(home)
    kept = shutil.copytree(home / "trained", home / "kept")
    draw = random.Random(0)
    for _ in range(6):
        shutil.rmtree(home / "trained")
        shutil.copytree(kept, home / "trained")
        flip(draw.choice(sorted((home / "trained" / "working").glob("*.safetensors"))), draw)
        ended = run(TRAIN, home)
        assert ended.status in (0, 2), ended.said
        assert "Traceback" not in ended.said
        if ended.status == 0:
            assert (home / "trained" / "model.safetensors").read_bytes() == whole


def test_3_a_full_disk_while_training_is_one_message(home):
    for largest in (10, 1_000, 5_000, 20_000):
        shutil.rmtree(home / "trained", ignore_errors=True)
        ended = run(TRAIN, home, limits={resource.RLIMIT_FSIZE: largest})
        check_refusal(ended)
        assert not list((home / "trained").rglob("*.part"))


def read_sequences(home):
    """What an extraction found."""
    found = json.loads((home / "out" / "results" / "extraction.json").read_text())
    return found["findings"], found["verdict"]


def list_kept(home):
    """The files in which a search keeps what it computed; one, in all versions."""
    return [path for path in (home / "work").glob("audits/*/*") if path.is_file() and not path.name.startswith(".")]


def measure_kept(home):
    """How many bytes a search has kept so far."""
    return sum(path.stat().st_size for path in list_kept(home))


def kill_search(home, size):
    """Begin a search anew, and kill it while it writes, once it has kept so many bytes; how many it kept."""
    for name in ("out", "work"):
        shutil.rmtree(home / name, ignore_errors=True)
    started, until = start(EXTRACT, home), time.monotonic() + 120
    while measure_kept(home) < size and time.monotonic() < until:
        time.sleep(0.001)
    started.kill()
    return measure_kept(home)


def test_4_a_search_that_is_killed_ends_with_the_same_numbers(home):
    assert run(EXTRACT, home).status == 0
    size, whole, draw, halfway = measure_kept(home), read_sequences(home), random.Random(1), 0
    for _ in range(8):
        halfway += size // 20 < kill_search(home, draw.uniform(0.05, 0.95) * size) < size
        assert run(EXTRACT, home).status == 0
        assert read_sequences(home) == whole
    assert halfway >= 4, "too few searches were killed while they wrote"


@pytest.mark.parametrize("place", ["at the end", "in the middle"])
def test_4_zero_bytes_in_what_a_search_keeps_are_refused_or_change_nothing(home, place):
    assert run(EXTRACT, home).status == 0
    size, whole = measure_kept(home), read_sequences(home)
    assert size // 2 <= kill_search(home, size // 2)
    (path,) = list_kept(home)
    data = bytearray(path.read_bytes())
    at = len(data) if place == "at the end" else len(data) // 2
    data[at : at + 80] = bytes(80)
    path.write_bytes(data)
    ended = run(EXTRACT, home)
    assert ended.status in (0, 2), ended.said
    assert "Traceback" not in ended.said
    if ended.status == 0:
        assert read_sequences(home) == whole
