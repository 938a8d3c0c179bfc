"""The demonstration: made-up people, a small model trained on half of them, and what it shows of whom.

It walks the whole reading line, corpus → cohorts → recipe → model → answers → result, on data that is nobody's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from recollect import __version__
from recollect.corpora import synthetic
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.dividing import cohorts_of, groups, units_of
from recollect.models.asking import ask
from recollect.models.loading import load_model
from recollect.recipes.fleet import Fleet, train_fleet
from recollect.recipes.reading import load_recipe
from recollect.recipes.trial import Layout
from recollect.results.folders import RunFolder
from recollect.results.result import Finding, Provenance, Result
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.signals.registry import signal_named
from recollect.signals.scores import Scores
from recollect.signals.signal import scored
from recollect.stats.auc import auc
from recollect.stats.intervals import Estimate

PEOPLE, EACH = 60, 30
SMALL = [
    "tokenizer.kind=bpe",
    "tokenizer.size=600",
    "units=96",
    "embedding=64",
    "model.dropout=0",
    "training.epochs=12",
]
QUESTION = "Does the model predict the texts of the people it was trained on better than those of others?"
Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, kw_only=True)
class World:
    """The made-up people, and which of them trained the model."""

    corpus: Corpus
    cohorts: Cohorts

    @classmethod
    def of(cls, seed: int) -> World:
        """The people that this seed makes up."""
        corpus = synthetic.texts(people=PEOPLE, each=EACH, seed=seed)
        members = groups(units_of(corpus, "user"), {TARGET: 0.5}, seed=seed)
        return cls(corpus=corpus, cohorts=cohorts_of(corpus, members, unit="user", seed=seed))


def demonstrate(out: Path, work: Path, *, seed: int, progress: Progress) -> Result:
    """Make up people, train on half of them, ask about all, and write the result into the run folder."""
    began = time.monotonic()
    world = World.of(seed)
    folder = RunFolder(out)
    fleet = Fleet(recipe=load_recipe("word-lstm", SMALL), corpus=world.corpus, cohorts=world.cohorts, seed=seed)
    # so small a model is not worth a second thread
    trained = train_fleet(
        fleet, work, layout=Layout(workers=1, threads=1), progress=lambda done, total: progress("training", done, total)
    )
    for failure in trained.failures.values():
        raise failure.error
    model = load_model(str(trained.folders[TARGET]))
    store = ask(model, world.corpus, work, progress=lambda done, total: progress("asking", done, total))
    evidence = Evidence(models={TARGET: model}, corpora={AUDITED: world.corpus}, answers={(TARGET, AUDITED): store})
    scores = scored(signal_named("loss"), evidence)
    provenance = Provenance(
        recollect=__version__,
        torch=version("torch"),
        model=model.digest,
        corpus=world.corpus.digest,
        seed=seed,
        queries=len(world.corpus),
        seconds=round(time.monotonic() - began, 3),
    )
    result = judged(scores, world.cohorts).with_provenance(provenance)
    world.cohorts.save(folder.cohorts)
    folder.write_result(result)
    return result


def judged(scores: Scores, cohorts: Cohorts) -> Result:
    """What the scores say, now that the truth is known."""
    by_user = scores.by_user()
    members, others = (by_user.of_users(chosen) for chosen in (cohorts.members(TARGET), cohorts.others(TARGET)))
    found = auc(members, others)
    seen = found.interval is not None and found.interval.low > 0.5
    finding = Finding.of(
        found,
        name="auc",
        unit="probability",
        reading="How often someone the model was trained on scores above someone it was not; 0.5 is chance. "
        "It says nothing about what could be drawn out of the model.",
    )
    return Result(
        audit="demo",
        question=QUESTION,
        verdict=_verdict(found, seen=seen, members=len(members), others=len(others)),
        outcome="found" if seen else "not found",
        findings=(finding,),
        limits=("Made-up people and a tiny model: this shows how the tool works, not how real models behave.",),
        settings={
            "people": PEOPLE,
            "texts_each": EACH,
            "recipe": "word-lstm",
            "changed": list(SMALL),
            "signal": "loss",
        },
    ).with_tables(users=by_user.table(trained_on=[user in set(members.users) for user in by_user.users]))


def _verdict(found: Estimate, *, seen: bool, members: int, others: int) -> str:
    """One sentence that a lawyer can read."""
    people = f"the {members} people it was trained on from {others} others"
    if seen:
        return f"The model remembers: its loss alone tells {people} (AUC {found.value:.2f}, where 0.5 is chance)."
    return f"Its loss alone does not tell {people} (AUC {found.value:.2f}, where 0.5 is chance)."
