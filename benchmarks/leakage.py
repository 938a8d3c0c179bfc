"""Counting whose words a run is: words per second, growth to ten times as many words, and the highest memory.

20,000 runs of 3–20 words in a stream of word numbers that follow Zipf's law, owned by 100,000 users. Beside it the
plain way: a rolling hash at every place for every length. The claims: at least 4 million words a second on one core,
and ten times the words in at most 11 times the time. Processor time. `--quick` takes a tenth of the words.
"""

from __future__ import annotations

import sys
import time
import tracemalloc

import numpy as np

from recollect.audits.leakage.counting import BLOCK
from recollect.audits.leakage.matching import Matcher
from recollect.audits.leakage.pairs import Pairs

QUICK = "--quick" in sys.argv
WORDS = 1_000_000 if QUICK else 10_000_000
RUNS, VOCABULARY, USERS, RECORD = 20_000, 50_000, 100_000, 20
CLAIM, GROWTH = 4e6, 11


def stream_of(words: int) -> np.ndarray:
    """Word numbers, a 0 at the end of every record."""
    rng = np.random.default_rng(0)
    ids = np.floor(VOCABULARY ** rng.random(words)).astype(np.int64)
    ids[RECORD :: RECORD + 1] = 0
    return ids


def runs_of(ids: np.ndarray) -> list[np.ndarray]:
    """Different runs that stand in the stream."""
    rng, chosen = np.random.default_rng(1), {}
    while len(chosen) < RUNS:
        length = int(rng.integers(3, RECORD + 1))
        begin = int(rng.integers(len(ids) // (RECORD + 1))) * (RECORD + 1) + int(rng.integers(RECORD + 1 - length))
        run = ids[begin : begin + length]
        if 0 not in run:
            chosen[run.tobytes()] = run.copy()
    return list(chosen.values())


def ours(ids: np.ndarray, runs: list[np.ndarray]) -> tuple[float, np.ndarray]:
    """Seconds, and how many users each run has."""
    began = time.process_time()
    matcher, pairs, block = Matcher(runs), Pairs(), BLOCK // (RECORD + 1) * (RECORD + 1)
    for begin in range(0, len(ids), block):
        places, found = matcher(ids[begin : begin + block])
        pairs.add(found, (begin + places) // (RECORD + 1) % USERS)
    users = np.zeros(len(runs), dtype=np.int64)
    for some, _ in pairs.distinct():
        users += np.bincount(some, minlength=len(runs))
    return time.process_time() - began, users


def every_length(ids: np.ndarray, runs: list[np.ndarray]) -> tuple[float, np.ndarray]:
    """The same by a rolling hash at every place for every length, looked up among the runs of that length."""
    began = time.process_time()
    rng = np.random.default_rng(2)
    values = rng.integers(2**64, size=VOCABULARY + 1, dtype=np.uint64)
    powers = np.cumprod(np.full(RECORD, 0x9E3779B97F4A7C15, dtype=np.uint64))
    hashed = {i: int((values[run] * powers[: len(run)]).sum()) for i, run in enumerate(runs)}
    users, block = np.zeros(len(runs), dtype=np.int64), BLOCK // (RECORD + 1) * (RECORD + 1)
    pairs = Pairs()
    for begin in range(0, len(ids), block):
        part = values[ids[begin : begin + block]]
        rolling = np.zeros(len(part), dtype=np.uint64)
        for length in range(1, RECORD + 1):
            rolling = rolling[: len(part) - length + 1] + part[length - 1 :] * powers[length - 1]
            theirs = [i for i, run in enumerate(runs) if len(run) == length]
            if not theirs:
                continue
            keys = np.array([hashed[i] for i in theirs], dtype=np.uint64)
            order = np.argsort(keys)
            at = np.minimum(np.searchsorted(keys[order], rolling), len(keys) - 1)
            places = np.flatnonzero(keys[order][at] == rolling)
            pairs.add(np.array(theirs)[order[at[places]]], (begin + places) // (RECORD + 1) % USERS)
    for some, _ in pairs.distinct():
        users += np.bincount(some, minlength=len(runs))
    return time.process_time() - began, users


def main() -> None:
    ids = stream_of(10 * WORDS)
    runs = runs_of(ids[:WORDS])
    ids[~np.isin(ids, np.concatenate(runs))] = 0
    small = ids[:WORDS]
    taken, users = ours(small, runs)
    print(f"{len(small):>12,} words  {taken:6.2f} s  {len(small) / taken / 1e6:6.1f} million words/s", flush=True)
    plain, same = every_length(small, runs)
    print(f"{'every length':>18}  {plain:6.2f} s  {len(small) / plain / 1e6:6.1f} million words/s", flush=True)
    assert (users == same).all(), "both ways count the same"
    long, _ = ours(ids, runs)
    print(f"{len(ids):>12,} words  {long:6.2f} s  {len(ids) / long / 1e6:6.1f} million words/s", flush=True)
    tracemalloc.start()
    for stream in (small, ids):
        tracemalloc.reset_peak()
        ours(stream, runs)
        print(f"{len(stream):>12,} words  {tracemalloc.get_traced_memory()[1] / 2**20:6.0f} MB besides the words")
    assert len(small) / taken >= CLAIM, f"slower than {CLAIM / 1e6:.0f} million words a second"
    assert long / taken <= GROWTH, f"ten times the words took {long / taken:.1f} times as long"


if __name__ == "__main__":
    main()
