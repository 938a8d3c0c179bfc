"""A run that is killed at any moment and started again ends with the same bytes as one that never was."""

from __future__ import annotations

import multiprocessing
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.execution.local import LocalBackend
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.loading.loader import load_model
from recollect.testing.tiny import TEXTS, build_tiny_model, save_tiny

BLOCK = 8


def ragged(count: int) -> Corpus:
    """Texts of all lengths in several scripts; every seventh comes twice."""
    draw = random.Random(0)
    texts = [" ".join(draw.choices(TEXTS, k=draw.randint(1, 3)))[draw.randint(0, 40) :] + str(i) for i in range(count)]
    return Corpus.of(
        Record(id=f"{i}-{again}", text=text) for i, text in enumerate(texts) for again in range(1 + (i % 7 == 0))
    )


CORPUS = ragged(160)


class Process(Protocol):
    """A run that can be killed."""

    def poll(self) -> int | None: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


def files(work: Path) -> dict[str, bytes]:
    """All that a run wrote."""
    return {path.name: path.read_bytes() for path in (work / "answers").glob("*/*")}


def shards(work: Path) -> int:
    """How many shards there are."""
    return len(list((work / "answers").glob("*/*.parquet")))


def killed_somewhere(start: Callable[[], Process], work: Path, draw: random.Random) -> bool:
    """Start a run and kill it at a random moment: some shards later, and some milliseconds. False if it ended first."""
    enough = shards(work) + draw.randint(0, 4)
    run = start()
    while run.poll() is None and shards(work) < enough:
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.03))
    if run.poll() is not None:
        assert run.poll() == 0, "a run that was not killed failed"
        return False
    run.kill()
    run.wait()
    return True


def undisturbed_after_kills(
    start: Callable[[Path], Process], folder: Path, expected: dict[str, bytes], wanted: int
) -> None:
    """Kill runs again and again, let the last one end, and compare every byte."""
    draw = random.Random(1)
    kills = stores = halfway = 0
    while kills < wanted:
        work = folder / f"killed-{stores}"
        while kills < wanted and killed_somewhere(lambda: start(work), work, draw):  # noqa: B023 - called at once
            kills += 1
            halfway += 0 < shards(work) < len(expected) - 2
        assert start(work).wait() == 0
        assert files(work) == expected
        stores += 1
    assert halfway >= wanted / 2, "too few kills fell between the first shard and the last"


class Forked:
    """A run in a copy of this process: starts at once, because torch is already there."""

    def __init__(self, model: str, work: Path) -> None:
        self._process = multiprocessing.get_context("fork").Process(target=score, args=(model, work, 1))
        self._process.start()

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        self._process.join()
        return self._process.exitcode


def score(model: str, work: Path, workers: int) -> None:
    """What every run does."""
    score_corpus(model, CORPUS, work, backend=LocalBackend(workers=workers, threads=1), block=BLOCK)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    """A tiny GPT-2 in a folder."""
    return str(save_tiny(build_tiny_model("gpt2"), tmp_path_factory.mktemp("models") / "gpt2"))


@pytest.fixture(scope="module")
def expected(model, tmp_path_factory) -> dict[str, bytes]:
    """What an undisturbed run writes."""
    work = tmp_path_factory.mktemp("undisturbed")
    score(model, work, 1)
    return files(work)


@pytest.mark.parametrize("moments", [10, pytest.param(20, marks=pytest.mark.slow)])
def test_a_run_killed_at_many_moments_ends_with_the_same_bytes(model, expected, tmp_path, moments):
    assert len(expected) == 160 / BLOCK + 2
    undisturbed_after_kills(lambda work: Forked(model, work), tmp_path, expected, moments)


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_killed import score
if __name__ == "__main__":
    score(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_real_process_killed_at_twenty_moments_ends_with_the_same_bytes(model, expected, tmp_path, workers):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent)))

    def start(work: Path) -> Process:
        return subprocess.Popen([sys.executable, script, model, work, str(workers)])  # noqa: S603 - our own script

    undisturbed_after_kills(start, tmp_path, expected, 20)


def test_the_answers_of_a_killed_run_are_those_of_the_model(model, tmp_path):
    run = Forked(model, tmp_path)
    while run.poll() is None and shards(tmp_path) < 5:
        time.sleep(0.001)
    run.kill()
    run.wait()
    store = score_corpus(model, CORPUS, tmp_path, backend=LocalBackend(threads=1))
    records = list(CORPUS)
    answers, direct = store.get_answers(records), load_model(model).answer(records)
    assert answers.records == direct.records
    assert abs(answers.logprob - direct.logprob).max() < 1e-4
