"""A small version of Song and Shmatikov 2019: 50 members, 50 others and 135 reference users of Reddit, four shadows.

    python reproductions/song2019/run.py --data DATA [--work WORK]

Killed at any moment and started again, it goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from pathlib import Path

from recollect.audits.provenance.audit import ProvenanceAudit
from recollect.corpora.corpus import Corpus
from recollect.corpora.dividing import cohorts_of
from recollect.corpora.record import Record
from recollect.corpora.validating import read_corpus
from recollect.pipeline.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.reading import load_recipe
from recollect.recipes.training import train
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET

MEMBERS, PEOPLE, FIRST, LAST = 50, 100, 200, 335
"""How many of the shuffled users train the target and are audited, and which of them are the reference users."""


def texts_of(users: list[str], texts: dict[str, list[str]], name: str) -> Corpus:
    """The texts of these users."""
    records = (Record(id=f"{user}-{i}", user=user, text=text) for user in users for i, text in enumerate(texts[user]))
    return Corpus.of(records, name=name)


def people(data: Path) -> tuple[Corpus, Corpus, Corpus]:
    """The members, all audited people, and the reference users."""
    texts: dict[str, list[str]] = {}
    for record in read_corpus(str(data / "reddit_comments" / "comments.jsonl.gz")):
        texts.setdefault(str(record.user), []).append(str(record.text))
    users = sorted(texts)
    random.Random(1).shuffle(users)  # noqa: S311 - a fixed choice of people, no secret
    return (
        texts_of(users[:MEMBERS], texts, "members"),
        texts_of(users[:PEOPLE], texts, "audited"),
        texts_of(users[FIRST:LAST], texts, "controls"),
    )


def row(plan: Plan, what: str) -> str:
    """What one audit found, as a row of a table."""
    began = time.monotonic()
    result = run(plan)
    cells = []
    for name in ("auc", "accuracy", "precision", "recall", "svm_accuracy", "svm_false_alarm_rate"):
        found = {finding.name: finding for finding in result.findings}.get(name)
        if found is None:
            cells.append("–")
        else:
            low, high = found.interval or (None, None)
            cells.append(f"{found.value:.3f}" + (f" ({low:.2f}–{high:.2f})" if name == "auc" else ""))
    queries = result.provenance.queries if result.provenance else 0
    return f"| {what} | {' | '.join(cells)} | {queries} | {time.monotonic() - began:.0f} s |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RECOLLECT_DATA"), required=False)
    parser.add_argument("--work", type=Path, default=Path(".recollect/song2019"), help="where models are kept")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the data lies: --data DIR, or the environment variable RECOLLECT_DATA")
    recipe = load_recipe("word-lstm")
    members, audited, controls = people(Path(given.data))
    target = train(recipe, members, given.work / "target", seed=0, threads=1)
    cohorts = cohorts_of(audited, {TARGET: sorted({str(r.user) for r in members})}, unit="user", seed=0)
    print("| | AUC | accuracy | precision | recall | SVM accuracy | SVM false alarms | queries | time |")
    print("|---|---|---|---|---|---|---|---|---|")
    sizes = [{"top_k": k} for k in (None, 500, 50, 5, 1)]
    fewer = [{"queries": m} for m in (1, 2, 4, 8)] + [{"queries": m, "select": "random"} for m in (1, 4)]
    for settings in sizes + fewer:
        for method in ("calibrated", "histogram"):
            audit = ProvenanceAudit(**{"method": method, "shadows": 4, "queries": None, "least": 1, **settings})
            plan = Plan(
                audit=audit,
                models={TARGET: str(target)},
                corpora={AUDITED: audited, CONTROLS: controls},
                cohorts={AUDITED: cohorts},
                recipe=recipe,
                work=given.work / "work",
                workers=1,
                threads=1,
            )
            said = ", ".join(f"{name} {value}" for name, value in settings.items())
            print(row(plan, f"{method}, {said}"), flush=True)


if __name__ == "__main__":
    main()
