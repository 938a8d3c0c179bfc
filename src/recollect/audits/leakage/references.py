"""Who compares: for each user a reference that has not seen them, and a second such model that plays the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.corpus import Corpus
from recollect.corpora.dividing import cohorts_of, groups, units_of
from recollect.files import read_json
from recollect.signals.evidence import AUDITED, REFERENCE, Evidence

LEFT_OUT = "left-out"
"""The part of models that are trained without two folds of the users each."""
FOLD = "fold"
"""The part of the corpora into which the audited one is divided."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Users with the models that have not seen them."""

    corpus: str = AUDITED
    """The part of the corpus that holds their records."""
    reference: str | None = None
    null: str | None = None
    """Another model that has not seen them."""
    seen: frozenset[str] = frozenset()
    """Those of them whom the reference has seen after all: nothing can be said of them."""


def groups_of(evidence: Evidence, folds: int) -> list[Group]:
    """The users by the models that have not seen them.

    Args:
        evidence: A given reference serves everybody whom it has not seen; a second one plays the target.
        folds: Else so many models are trained, each without two neighbouring folds of the users, so that every user
            meets two models that have not seen them. 0 for none.
    """
    given = evidence.playing(REFERENCE)
    if given:
        return [
            Group(
                reference=given[0],
                null=given[1] if len(given) > 1 else None,
                seen=frozenset().union(*(seen_by(evidence, name) for name in given[:2])),
            )
        ]
    if not folds:
        return [Group()]
    return [
        Group(corpus=f"{FOLD}-{i}", reference=f"{LEFT_OUT}-{i}", null=f"{LEFT_OUT}-{(i - 1) % folds}")
        for i in range(folds)
    ]


@dataclass(frozen=True)
class Divided:
    """The audited corpus in folds, and who trains which model."""

    corpora: Mapping[str, Corpus]
    cohorts: Cohorts


def divided(corpus: Corpus, folds: int, *, seed: int) -> Divided:
    """The users in folds; each model is trained without two of them.

    Args:
        corpus: The audited corpus.
        folds: How many folds and models.
        seed: Of the run.
    """
    unit: Unit = "user" if corpus.summary.users else "record"
    units = units_of(corpus, unit)
    drawn = groups(units, {str(i): 1 / folds for i in range(folds)}, seed=seed, name="leakage")
    parts = [drawn[str(i)] for i in range(folds)]
    members = {f"{LEFT_OUT}-{i}": sorted(set(units).difference(parts[i], parts[(i + 1) % folds])) for i in range(folds)}
    corpora = {f"{FOLD}-{i}": corpus.of_users(part, name=f"{corpus.name} ({FOLD} {i})") for i, part in enumerate(parts)}
    return Divided(corpora, cohorts_of(corpus, members, unit=unit, seed=seed))


def seen_by(evidence: Evidence, model: str) -> frozenset[str]:
    """The audited users whom a given model is known to have seen: from the cohorts, or from its own card."""
    cohorts, corpus = evidence.cohorts.get(AUDITED), evidence.corpora[AUDITED]
    if cohorts is not None and model in cohorts.models:
        return _owners(corpus, cohorts.members(model))
    folder = Path(evidence.models[model].name)
    if not (folder / "card.json").is_file():
        return frozenset()
    if (folder / "members.json").is_file():
        return _owners(corpus, read_json(folder / "members.json"))
    same = read_json(folder / "card.json")["corpus"]["digest"] == corpus.digest
    return frozenset(record.owner for record in corpus) if same else frozenset()


def _owners(corpus: Corpus, units: tuple[str, ...] | list[str]) -> frozenset[str]:
    """The users who are, or own, one of these units."""
    chosen = frozenset(units)
    return frozenset(record.owner for record in corpus if record.owner in chosen or record.id in chosen)
