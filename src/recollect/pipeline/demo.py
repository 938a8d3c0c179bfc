"""The demonstration: made-up people, a small model trained on half of them, and what it shows of whom.

It walks the whole reading line, corpus → cohorts → recipe → model → answers → result, on data that is nobody's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.desk import BARE_DESK, Desk, Progress
from recollect.corpora import synthetic
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.dividing import cohorts_of, groups, units_of
from recollect.errors import NotEnoughData
from recollect.pipeline.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.fleet import Fleet, train_fleet
from recollect.recipes.reading import load_recipe
from recollect.recipes.trial import Layout
from recollect.results.result import Finding, Outcome, Result, Skipped
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.signals.registry import signal_named
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
    world = World.of(seed)
    fleet = Fleet(recipe=load_recipe("word-lstm", SMALL), corpus=world.corpus, cohorts=world.cohorts, seed=seed)
    # so small a model is not worth a second thread
    one = Layout(workers=1, threads=1)
    trained = train_fleet(fleet, work, layout=one, progress=partial(progress, "training the model"))
    for failure in trained.failures.values():
        raise failure.error
    plan = Plan(
        audit=DemoAudit(),
        models={TARGET: str(trained.folders[TARGET])},
        corpora={AUDITED: world.corpus},
        cohorts={AUDITED: world.cohorts},
        seed=seed,
        work=work,
        threads=1,
    )
    return run(plan, out, progress=progress)


@dataclass(frozen=True, kw_only=True)
class DemoAudit:
    """Whether a signal tells the people who trained a model from others, where it is known who did."""

    signal: str = "loss"
    name: ClassVar[str] = "demo"
    question: ClassVar[str] = (
        "Does the model predict the texts of the people it was trained on better than those of others?"
    )
    paper: ClassVar[str] = "Yeom et al. 2018, Privacy Risk in Machine Learning"

    def needs(self, evidence: Evidence) -> Needs:
        """The target's answers about everybody."""
        return Needs(
            access={TARGET: signal_named(self.signal).needs[TARGET]},
            given=frozenset({TARGET, AUDITED}),
            ask=frozenset({(TARGET, AUDITED)}),
        )

    def run(self, evidence: Evidence, rng: np.random.Generator, desk: Desk = BARE_DESK) -> Result:
        """What the scores say, now that the truth is known."""
        by_user, truth = scored(signal_named(self.signal), evidence).by_user(), evidence.cohorts[AUDITED]
        members, others = by_user.of_users(truth.members(TARGET)), by_user.of_users(truth.others(TARGET))
        try:
            found = auc(members, others)
        except NotEnoughData as refusal:
            skipped = Skipped(audit=self.name, finding="auc", reason=refusal.found)
            return self._result("cannot tell", refusal.found, skipped=(skipped,))
        seen = found.interval is not None and found.interval.low > 0.5
        finding = Finding.of(
            found,
            name="auc",
            unit="probability",
            reading="How often someone the model was trained on scores above someone it was not; 0.5 is chance. "
            "It says nothing about what could be drawn out of the model.",
        )
        verdict = _verdict(found, seen=seen, members=len(members), others=len(others))
        result = self._result("found" if seen else "not found", verdict, findings=(finding,))
        return result.with_tables(
            users=by_user.table(trained_on=[user in set(members.users) for user in by_user.users])
        )

    def _result(self, outcome: Outcome, verdict: str, **more: Any) -> Result:
        """The result with what is always said."""
        limits = ("Made-up people and a tiny model: this shows how the tool works, not how real models behave.",)
        return Result(audit=self.name, question=self.question, verdict=verdict, outcome=outcome, limits=limits, **more)


def _verdict(found: Estimate, *, seen: bool, members: int, others: int) -> str:
    """One sentence that a lawyer can read."""
    people = f"the {members} people it was trained on from {others} others"
    if seen:
        return f"The model remembers: its loss alone tells {people} (AUC {found.value:.2f}, where 0.5 is chance)."
    return f"Its loss alone does not tell {people} (AUC {found.value:.2f}, where 0.5 is chance)."
