"""A small version of Song and Shmatikov 2019: 50 members and 50 others of Reddit, four shadows of 50 users each.

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
from recollect.audits.provenance.reference import divided
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.dividing import cohorts_of
from recollect.corpora.record import Record
from recollect.corpora.validating import read_corpus
from recollect.pipeline.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.fleet import Fleet, train_fleet
from recollect.recipes.reading import load_recipe
from recollect.recipes.recipe import Recipe
from recollect.recipes.training import train
from recollect.recipes.trial import Layout
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence

MEMBERS, PEOPLE, FIRST, LAST, MORE = 50, 100, 200, 335, 480
"""How many of the shuffled users train the target and are audited; which of them the shadows were drawn from, and up
to whom there are further users who only calibrate."""
SHADOWS = 4


def texts_of(users: list[str], texts: dict[str, list[str]], name: str) -> Corpus:
    """The texts of these users."""
    records = (Record(id=f"{user}-{i}", user=user, text=text) for user in users for i, text in enumerate(texts[user]))
    return Corpus.of(records, name=name)


def people(data: Path, skip: int) -> tuple[Corpus, Corpus, Corpus, Corpus]:
    """The members, all audited people, the users of whom some train shadows, and all reference users."""
    texts: dict[str, list[str]] = {}
    for record in read_corpus(str(data / "reddit_comments" / "comments.jsonl.gz")):
        texts.setdefault(str(record.user), []).append(str(record.text))
    users = sorted(texts)
    random.Random(1).shuffle(users)
    return (
        texts_of(users[skip : skip + MEMBERS], texts, "members"),
        texts_of(users[skip : skip + PEOPLE], texts, "audited"),
        texts_of(users[FIRST:LAST], texts, "shadow users"),
        texts_of(users[FIRST:MORE], texts, "controls"),
    )


def shadows_of(recipe: Recipe, users: Corpus, controls: Corpus, work: Path) -> tuple[dict[str, str], Cohorts]:
    """The shadows' folders, and who of all reference users trained which."""
    drawn = divided(Evidence(corpora={CONTROLS: users}), shadows=SHADOWS, share=0.25, artificial=1)
    assert drawn is not None
    fleet = Fleet(recipe=recipe, corpus=users, cohorts=drawn.cohorts)
    trained = train_fleet(fleet, work, layout=Layout(workers=1, threads=1))
    assert not trained.failures
    members = {name: drawn.cohorts.members(name) for name in drawn.shadows}
    return {name: str(path) for name, path in trained.folders.items()}, cohorts_of(
        controls, members, unit="user", seed=0
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
    parser.add_argument("--skip", type=int, default=0, choices=[0, 100], help="100: another target, of other people")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the data lies: --data DIR, or the environment variable RECOLLECT_DATA")
    recipe = load_recipe("word-lstm")
    members, audited, users, controls = people(Path(given.data), given.skip)
    target = train(
        recipe, members, given.work / (f"target-{given.skip}" if given.skip else "target"), seed=0, threads=1
    )
    shadows, taught = shadows_of(recipe, users, controls, given.work / "work")
    cohorts = cohorts_of(audited, {TARGET: sorted({str(r.user) for r in members})}, unit="user", seed=0)
    print("| | AUC | accuracy | precision | recall | SVM accuracy | SVM false alarms | queries | time |")
    print("|---|---|---|---|---|---|---|---|---|")
    sizes = [{"top_k": k} for k in (None, 500, 50, 5, 1)]
    fewer = [{"queries": m} for m in (1, 2, 4, 8)] + [{"queries": m, "select": "random"} for m in (1, 4)]
    for settings in sizes + fewer:
        for method in ("calibrated", "histogram"):
            audit = ProvenanceAudit(**{"method": method, "shadows": SHADOWS, "queries": None, "least": 1, **settings})
            plan = Plan(
                audit=audit,
                models={TARGET: str(target), **shadows},
                corpora={AUDITED: audited, CONTROLS: controls},
                cohorts={AUDITED: cohorts, CONTROLS: taught},
                work=given.work / "work",
                workers=1,
                threads=1,
            )
            said = ", ".join(f"{name} {value}" for name, value in settings.items())
            print(row(plan, f"{method}, {said}"), flush=True)


if __name__ == "__main__":
    main()
