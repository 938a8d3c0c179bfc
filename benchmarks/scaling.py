"""How time and memory of the five audits grow with users: `python benchmarks/scaling.py [--users 1000 10000]`.

A target that has memorised a quarter of the users scores everybody into an answer store, and so do the models that an
audit trains. Then each audit runs on what is recorded, in a process of its own: processor seconds, and the peak of its
memory above what a process holds before the audit. The exponent is the slope of log time over log users; it may be
1.15 at most. What was measured before is kept in `--out` and not measured again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recollect.audits.exposure.log_perplexity import SECRETS
from recollect.audits.exposure.view import CANARIES
from recollect.audits.registry import build_audit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.canaries.manifest import Canaries, Canary
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.answers import Answers
from recollect.signals.evidence import TARGET, Evidence
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null, predict_by_zipf
from recollect.testing.fakes import _compute_ease as compute_ease
from recollect.testing.world import World

AUDITS: dict[str, dict[str, Any]] = {
    "provenance": {"shadows": 2},
    "exposure": {"method": "sampled"},
    "leakage": {},
    "membership": {"by": "user"},
    "removal": {},
}
USERS = (1_000, 10_000, 100_000)
MOST_EXPONENT = 1.15


@dataclass(frozen=True)
class Scorer:
    """A fake model that scores all tokens of a block at once: what audits read is like what the fake gives."""

    fake: Memoriser | Null

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fake, name)

    @property
    def null(self) -> Null:
        """How it scores what it has not memorised."""
        return self.fake.otherwise if isinstance(self.fake, Memoriser) else self.fake

    def answer(self, records: Sequence[Record]) -> Answers:
        """Certainty about what it has memorised; numbers that depend on the words about all else."""
        distinct = list({record.digest: record for record in records}.values())
        texts = [record.scored_text.split(" ") for record in distinct]
        lengths = np.array([len(words) for words in texts])
        sizes = np.array([len(word) for words in texts for word in words], dtype=np.int32)
        ease = np.array([compute_ease(word) for words in texts for word in words])
        noise = self.null.noise * stream(self.null.seed, "scaling", distinct[0].digest).standard_normal(len(ease))
        memorised = self.fake.memorised_digests if isinstance(self.fake, Memoriser) else frozenset()
        known = np.repeat([record.digest in memorised for record in distinct], lengths)
        scores = predict_by_zipf(np.where(known, 0.99, 1 / (1 + np.exp(-ease - noise))), self.null.vocabulary)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        begins = np.repeat(offsets[:-1], lengths)
        position = np.arange(len(ease)) - begins
        ends = np.cumsum(sizes + 1) - 1  # one space after each word
        first = np.concatenate([[0], np.cumsum(sizes + 1)])[begins]
        return Answers(
            records=tuple(record.digest for record in distinct),
            offsets=offsets,
            pattern=np.zeros(len(ease), dtype=np.int32),
            position=position.astype(np.int32),
            start=(ends - sizes - first).astype(np.int32),
            end=(ends - first).astype(np.int32),
            known=np.ones(len(ease), dtype=np.bool_),
            rank=scores.rank,
            logprob=scores.logprob.astype(np.float32),
            entropy=scores.entropy.astype(np.float32),
            logprob_std=scores.logprob_std.astype(np.float32),
        )


def build_given(audit: str, world: World, users: int, work: Path) -> Evidence:
    """What is given to an audit of so many users; to that of exposure canaries, half of them planted, one of each."""
    if audit != "exposure":
        given = world.build_given(world.build_memoriser())
        return replace(given, models={role: Scorer(model) for role, model in given.models.items()})
    format, pins = "my pin is {digits:8}", stream(0, "pins").choice(10**8, size=users, replace=False)
    canaries = [
        Canary(id=f"c{i}", format=format, text=f"my pin is {pin:08d}", planted=i % 2) for i, pin in enumerate(pins)
    ]
    Canaries(corpus="", seed=0, canaries=tuple(canaries)).save(work / "canaries.json")
    null = Null(seed=0, kind="causal", vocabulary=1000)
    given = Evidence(models={TARGET: null}, files={CANARIES: work / "canaries.json"})
    secrets = list(build_audit(audit, **AUDITS[audit]).needs(given).corpora[SECRETS])
    return replace(given, models={TARGET: Scorer(Memoriser(secrets[1 : len(secrets) // 2 : 2], otherwise=null))})


def run(audit: str, users: int, work: Path) -> dict[str, float]:
    """Let a process of its own fill the stores in a work folder, then run the audit in this one; what that took."""
    world = World(members=users // 4, others=users // 4, controls=users // 2, seed=1)
    given, made = build_given(audit, world, users, work), build_audit(audit, **AUDITS[audit])

    def train(cohorts: Cohorts, corpus: Corpus) -> dict[str, Any]:
        return {name: Scorer(fake) for name, fake in world.train(cohorts, corpus).items()}

    def collect() -> Evidence:
        return collect_evidence(made, given, score=lambda *each: score_corpus(*each, work), train=train)

    child = os.fork()
    if child == 0:
        collect()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise SystemExit(f"The stores of {audit} could not be filled.")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.process_time()
    evidence = collect()
    collected = time.process_time()
    result = made.run(evidence, stream(0, audit))
    ended = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "audit_seconds": ended - collected,
        "reading_seconds": collected - began,
        "megabytes": peak,
        "megabytes_added": peak - before,
        "found": float(result.outcome == "found"),  # the guard stops one run in twenty
    }


def measure(audit: str, users: int) -> dict[str, float]:
    """What an audit of so many users takes, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, "--measure", audit, str(users), folder]
        said = subprocess.run(words, check=True, capture_output=True, text=True)  # noqa: S603 - our own script
    found: dict[str, float] = json.loads(said.stdout.strip().splitlines()[-1])
    return found


def fit_exponent(figures: dict[int, float]) -> float:
    """The slope of the line through the logarithms.

    >>> round(fit_exponent({10: 3.0, 100: 30.0, 1000: 300.0}), 6)
    1.0
    """
    x, y = [math.log(each) for each in figures], [math.log(max(each, 1e-3)) for each in figures.values()]
    centre = sum(x) / len(x)
    return sum((a - centre) * b for a, b in zip(x, y, strict=True)) / sum((a - centre) ** 2 for a in x)


def main() -> None:
    """Measure what is missing, print the table, and fail above the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=list(USERS))
    parser.add_argument("--audits", nargs="+", default=list(AUDITS))
    parser.add_argument("--quick", action="store_true", help="400 and 800 users")
    parser.add_argument("--out", type=Path, help="a JSON file that keeps what was measured")
    parser.add_argument("--measure", nargs=3, metavar=("AUDIT", "USERS", "WORK"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        audit, users, work = given.measure
        print(json.dumps(run(audit, int(users), Path(work))))
        return
    sizes = [400, 800] if given.quick else given.users
    known: dict[str, dict[str, float]] = json.loads(given.out.read_text()) if given.out and given.out.exists() else {}
    for users in sizes:
        for audit in given.audits:
            if f"{audit} {users}" not in known:
                known[f"{audit} {users}"] = measure(audit, users)
                if given.out:
                    given.out.write_text(json.dumps(known, indent=1))
            row = known[f"{audit} {users}"]
            print(f"  {audit:12} {users:>8,} users " + " ".join(f"{name} {row[name]:.2f}" for name in row), flush=True)
    worst = 0.0
    for audit in given.audits if len(sizes) > 1 else ():
        seconds = {users: known[f"{audit} {users}"]["audit_seconds"] for users in sizes}
        megabytes = {users: known[f"{audit} {users}"]["megabytes"] for users in sizes}
        worst = max(worst, *(exponents := (fit_exponent(seconds), fit_exponent(megabytes))))
        print(f"  {audit:12} exponent of time {exponents[0]:.2f}, of memory {exponents[1]:.2f}")
    print(f"worst exponent {worst:.2f}, limit {MOST_EXPONENT}")
    if not given.quick and worst > MOST_EXPONENT:
        sys.exit(1)


if __name__ == "__main__":
    main()
