"""A language model of Reddit users: with twenty of them, without, and after three ways of unlearning them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from common.outcomes import Figure, Outcome
from laboratory import Laboratory
from unlearning import Unlearning

from recollect.audits.removal.audit import RemovalAudit
from recollect.corpora import read_corpus
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import draw_groups
from recollect.corpora.record import Record
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.recipe_file import load_recipe
from recollect.results.result import Result
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET

PEOPLE = {"go": 20, "stay": 40, "controls": 80}
COMMENTS, SHORTEST, LONGEST = 10, 20, 150
"""Of each user, and how many characters a comment has."""
RECIPE = load_recipe(
    "word-gru",
    [
        *("units=96", "embedding=48", "tokenizer.kind=bpe", "tokenizer.size=500", "sequences.length=100"),
        *("learning_rate=0.01", "batch_size=16", "training.epochs=20"),
    ],
)
MODELS = 4
ALONE = 4
"""People who are judged one by one: with 80 controls no more can be, corrected for many."""
DRAWS = 6
"""The settings were chosen on the first."""
UNCLEAN = {"still there", "over-unlearned"}
RIGHT = {
    "with": {"still there"},
    "without": {"gone"},
    "fine-tuned on the rest": {"still there"},
    "gradient ascent": UNCLEAN,
    "gradient ascent, the rest kept": UNCLEAN,
}
"""What is right to say. How far ascent pushes the twenty differs from draw to draw: they may still stand out, or lie
below people whom the model never saw."""


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """Those who are to go, those who stay, those whom no model saw, and the models."""

    lab: Laboratory
    draw: int

    @cached_property
    def parts(self) -> dict[str, Corpus]:
        """The corpora of the three groups."""
        texts = _texts(self.lab)
        drawn = draw_groups(sorted(texts), PEOPLE, seed=self.draw)
        return {
            name: Corpus.of((record for user in users for record in texts[user]), name=name)
            for name, users in drawn.items()
        }

    @cached_property
    def models(self) -> dict[str, Path]:
        """The folder of every model."""
        go, stay = self.parts["go"], self.parts["stay"]
        everybody = Corpus.of([*go, *stay], name="everybody")
        trained = self.lab.trained(RECIPE, everybody, self.draw)
        ways = {
            "fine-tuned on the rest": Unlearning(steps=50, learning_rate=1e-3, stay=stay),
            "gradient ascent": Unlearning(steps=50, learning_rate=1e-3, go=go),
            "gradient ascent, the rest kept": Unlearning(steps=75, learning_rate=3e-3, go=go, stay=stay),
        }
        unlearnt = {name: way.applied(trained, self.lab.work / "models") for name, way in ways.items()}
        return {"with": trained, "without": self.lab.trained(RECIPE, stay, self.draw), **unlearnt}

    def judged(self, name: str, audit: RemovalAudit, audited: Corpus) -> Result:
        """What the audit says of a model."""
        plan = Plan(
            audit=audit,
            models={TARGET: str(self.models[name])},
            corpora={AUDITED: audited, CONTROLS: self.parts["controls"]},
            recipe=RECIPE,
            workers=1,
            threads=self.lab.threads,
            backend=self.lab.backend,
            work=self.lab.work,
        )
        return run(plan)

    @cached_property
    def few(self) -> Corpus:
        """Those who are judged one by one."""
        users = sorted({str(record.user) for record in self.parts["go"]})[:ALONE]
        return self.parts["go"].select_users(users)


def study(lab: Laboratory) -> Outcome:
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    every: list[tuple[str, set[str]]] = []
    for draw in range(DRAWS):
        people = People(lab=lab, draw=draw)
        for name, right in RIGHT.items():
            result = people.judged(name, RemovalAudit(models=MODELS), people.parts["go"])
            said = str(result.settings["decision"])
            every.append((said, right))
            figures.append(Figure(f"draw {draw + 1}, {name}: verdict", None, said))
            details[f"{draw} {name}"] = {
                "verdict": result.verdict,
                "notes": [note.text for note in result.notes],
                **_values(result),
            }
        for name in ("with", "without"):
            result = people.judged(name, RemovalAudit(by="user", models=MODELS), people.few)
            figures.append(Figure(f"draw {draw + 1}, {name}: {ALONE} people one by one", None, result.verdict))
            details[f"{draw} {name} by user"] = _values(result)
    untold = sum(said == "inconclusive" for said, _ in every)
    wrong = sum(said not in right for said, right in every) - untold
    figures += [Figure(f"wrong verdicts, of {len(every)}", None, wrong), Figure("cannot tell", None, untold)]
    return Outcome(
        title="A language model and twenty people",
        scale=f"Reddit users with {COMMENTS} comments each: 20 to go, 40 who stay, 80 controls; a GRU of 96 units; "
        f"{MODELS} calibration models. The paper has no language model.",
        figures=figures,
        details=details,
    )


def _values(result: Result) -> dict[str, Any]:
    """The findings."""
    return {finding.name: finding.value for finding in result.findings}


@cache
def _texts(lab: Laboratory) -> dict[str, list[Record]]:
    """The first short comments of every user who has enough of them."""
    found: dict[str, list[Record]] = {}
    for record in read_corpus(lab.file("reddit_comments/comments.jsonl.gz")):
        mine = found.setdefault(str(record.user), [])
        if len(mine) < COMMENTS and SHORTEST <= len(str(record.text)) <= LONGEST:
            mine.append(record)
    return {user: records for user, records in found.items() if len(records) == COMMENTS}
