"""Leakage: counting whose words a run is, and the whole audit beside the time in which its models are asked.

(a) 20,000 runs of 3–20 words in word numbers that follow Zipf's law, owned by 100,000 users; beside it the plain way, a
rolling hash at every place for every length. The claims: at least 4 million words a second on one core, ten times the
words in at most 11 times the time, and memory that does not grow with the words: they are made block by block, and the
most that the process ever held is told after each length. (b) A small word model and two references, a million words.
The claim: at most 1.15 times the time of asking. Processor time. `--quick` takes a tenth of the words; `--counting` or
`--audit` one part alone.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recollect.audits.leakage.occurrences import BLOCK, OccurrenceMatcher, OccurrencePairs

QUICK = "--quick" in sys.argv
WORDS = 1_000_000 if QUICK else 10_000_000
AUDITED = 100_000 if QUICK else 1_000_000
RUNS, VOCABULARY, USERS, RECORD = 20_000, 50_000, 100_000, 20
PART = BLOCK // (RECORD + 1) * (RECORD + 1)
CLAIM, GROWTH, RATIO = 4e6, 11, 1.15


def blocks_of(words: int) -> Iterator[np.ndarray]:
    """Word numbers block by block, a 0 at the end of every record."""
    for i in range(-(-words // PART)):
        ids = np.floor(VOCABULARY ** np.random.default_rng([0, i]).random(min(PART, words - i * PART))).astype(np.int64)
        ids[RECORD :: RECORD + 1] = 0
        yield ids


def runs_of(words: int) -> list[np.ndarray]:
    """Different runs that stand in so many words."""
    rng, chosen, blocks = np.random.default_rng(1), {}, list(blocks_of(words))
    while len(chosen) < RUNS:
        ids = blocks[int(rng.integers(len(blocks)))]
        length = int(rng.integers(3, RECORD + 1))
        begin = int(rng.integers(len(ids) // (RECORD + 1))) * (RECORD + 1) + int(rng.integers(RECORD + 1 - length))
        run = ids[begin : begin + length]
        if len(run) == length and 0 not in run:
            chosen[run.tobytes()] = run.copy()
    return list(chosen.values())


def ours(words: int, runs: list[np.ndarray]) -> tuple[float, np.ndarray]:
    """Seconds of counting, and how many users each run has."""
    met = np.zeros(VOCABULARY + 1, dtype=np.int64)
    met[np.unique(np.concatenate(runs))] = 1
    began = time.process_time()
    matcher, pairs = OccurrenceMatcher(runs), OccurrencePairs()
    taken = time.process_time() - began
    for i, ids in enumerate(blocks_of(words)):
        spelt = ids * met[ids]
        began = time.process_time()
        places, found = matcher(spelt)
        pairs.add(found, (i * PART + places) // (RECORD + 1) % USERS)
        taken += time.process_time() - began
    began = time.process_time()
    users = np.zeros(len(runs), dtype=np.int64)
    for some, _ in pairs.iter_distinct():
        users += np.bincount(some, minlength=len(runs))
    return taken + time.process_time() - began, users


def every_length(words: int, runs: list[np.ndarray]) -> tuple[float, np.ndarray]:
    """The same by a rolling hash at every place for every length, looked up among the runs of that length."""
    values = np.random.default_rng(2).integers(2**64, size=VOCABULARY + 1, dtype=np.uint64)
    powers = np.cumprod(np.full(RECORD, 0x9E3779B97F4A7C15, dtype=np.uint64))
    tables = {}
    for length in range(3, RECORD + 1):
        theirs = np.array([i for i, run in enumerate(runs) if len(run) == length])
        keys = np.array([int((values[runs[i]] * powers[:length]).sum()) for i in theirs], dtype=np.uint64)
        tables[length] = theirs[np.argsort(keys)], np.sort(keys)
    pairs, taken = OccurrencePairs(), 0.0
    for i, ids in enumerate(blocks_of(words)):
        began = time.process_time()
        part = values[ids]
        rolling = np.zeros(len(part), dtype=np.uint64)
        for length in range(1, RECORD + 1):
            rolling = rolling[: len(part) - length + 1] + part[length - 1 :] * powers[length - 1]
            if length not in tables:
                continue
            theirs, keys = tables[length]
            at = np.minimum(np.searchsorted(keys, rolling), len(keys) - 1)
            places = np.flatnonzero(keys[at] == rolling)
            pairs.add(theirs[at[places]], (i * PART + places) // (RECORD + 1) % USERS)
        taken += time.process_time() - began
    users = np.zeros(len(runs), dtype=np.int64)
    for some, _ in pairs.iter_distinct():
        users += np.bincount(some, minlength=len(runs))
    return taken, users


def counting() -> None:
    """Part (a)."""
    runs = runs_of(WORDS // 10)
    times = {}
    for words in (WORDS // 10, WORDS, 10 * WORDS):
        times[words], users = ours(words, runs)
        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        speed = words / times[words] / 1e6
        print(f"{words:>12,} words  {times[words]:6.2f} s  {speed:6.1f} million words/s  {highest:6.0f} MB", flush=True)
        if words == WORDS // 10:
            plain, same = every_length(words, runs)
            print(f"{'every length':>18}  {plain:6.2f} s  {words / plain / 1e6:6.1f} million words/s", flush=True)
            assert (users == same).all(), "both ways count the same"
    growth = times[10 * WORDS] / times[WORDS]
    assert WORDS / times[WORDS] >= CLAIM, f"slower than {CLAIM / 1e6:.0f} million words a second"
    assert growth <= GROWTH, f"ten times the words took {growth:.1f} times as long"


def audit() -> None:
    """Part (b)."""
    from _leakage_audit import measure

    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), AUDITED)
    ratio = found["whole"] / found["asking"]
    print(f"{AUDITED:>12,} words  audit {found['whole']:.1f} s, of which asking {found['asking']:.1f} s: {ratio:.3f}")
    assert QUICK or ratio <= RATIO, f"the audit takes {ratio:.2f} times as long as asking"


if __name__ == "__main__":
    if "--audit" not in sys.argv:
        counting()
    if "--counting" not in sys.argv:
        audit()
