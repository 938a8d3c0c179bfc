"""Who is judged, and by whom: the scores of candidates and controls, by record or by user, and the truth if known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.errors import PlanError
from recollect.signals.evidence import AUDITED, SHADOW, TARGET, Evidence
from recollect.signals.scores import Scores
from recollect.signals.signal import Signal, scored

By = Literal["record", "user"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Standing:
    """One signal's scores of all that are judged; records in the order of their ids, whatever that of the corpora."""

    candidates: Scores
    controls: Scores
    """Known not to be in training, and no candidate's content or user among them."""
    trained: Mapping[str, bool] | None
    """Whether a candidate was in training, where that is known."""
    dropped: Mapping[str, int] | None = None
    """How many were left out, by reason."""

    @property
    def members(self) -> Scores:
        """The candidates who were in training."""
        return self._known(wanted=True)

    @property
    def others(self) -> Scores:
        """The candidates who were not."""
        return self._known(wanted=False)

    def _known(self, *, wanted: bool) -> Scores:
        """The candidates of whom this is true."""
        trained = self.trained or {}
        return self.candidates.select([name for name in self.candidates.records if trained.get(name) is wanted])

    def by_user(self) -> Standing:
        """The same by user: the mean over a user's records. Users of whom only some records trained are left out."""
        trained, mixed = None, set[str]()
        if self.trained is not None:
            said: dict[str, set[bool]] = {}
            for record, user in zip(self.candidates.records, self.candidates.users, strict=True):
                said.setdefault(user, set()).add(self.trained[record])
            mixed = {user for user, found in said.items() if len(found) > 1}
            trained = {user: next(iter(found)) for user, found in said.items() if user not in mixed}
        users = self.candidates.by_user()
        dropped = {
            **(self.dropped or {}),
            **({"users_partly_trained_on": len(mixed)} if mixed else {}),
        }
        return Standing(
            candidates=users.select([user for user in users.records if user not in mixed]),
            controls=self.controls.by_user(),
            trained=trained,
            dropped=dropped,
        )


def standing(signal: Signal, evidence: Evidence, controls: str, *, by: By) -> Standing:
    """The scores of all candidates and controls.

    Args:
        signal: What gives the scores.
        evidence: Holds all answers that the signal needs about both corpora.
        controls: The part of the corpus that gives the thresholds.
        by: Whether records or users are judged.
    """
    audited, population = evidence.corpora[AUDITED], evidence.corpora[controls]
    candidates, others = _ordered(scored(signal, evidence)), _ordered(scored(signal, evidence, controls))
    others = _apart(others, population)
    kept = _unrelated(others, population, audited, set(candidates.users))
    dropped = Counter(
        {
            "candidates_without_score": len(audited) - len(candidates),
            "controls_without_score": len(population) - len(others),
            "controls_shared_with_candidates": len(others) - len(kept),
        }
    )
    found = Standing(
        candidates=candidates,
        controls=kept,
        trained=_truth(evidence, candidates),
        dropped={reason: count for reason, count in dropped.items() if count},
    )
    return found if by == "record" else found.by_user()


def _ordered(scores: Scores) -> Scores:
    """The scores in the order of their ids."""
    return scores.select(sorted(scores.records))


def _apart(scores: Scores, corpus: Corpus) -> Scores:
    """The scores of controls, where a record that has no user gets an owner that no candidate can have."""
    nameless = {record.id for record in corpus if record.user is None}
    users = tuple(
        f"control\x1f{record}" if record in nameless else user
        for record, user in zip(scores.records, scores.users, strict=True)
    )
    return Scores(scores.records, users, scores.values)


def _unrelated(scores: Scores, corpus: Corpus, audited: Corpus, users: set[str]) -> Scores:
    """The controls that share neither content nor user with a candidate."""
    contents = {record.digest for record in audited}
    same = {record.id for record in corpus if record.digest in contents}
    owned = zip(scores.records, scores.users, strict=True)
    return scores.select([record for record, user in owned if record not in same and user not in users])


def _truth(evidence: Evidence, candidates: Scores) -> dict[str, bool] | None:
    """Whether each candidate was in training; None where nobody said."""
    cohorts = evidence.cohorts.get(AUDITED)
    name = None if cohorts is None else target_cohort(cohorts)
    if cohorts is None or name is None:
        return None
    members = frozenset(cohorts.members(name))
    units = candidates.users if cohorts.unit == "user" else candidates.records
    return {record: unit in members for record, unit in zip(candidates.records, units, strict=True)}


def target_cohort(cohorts: Cohorts) -> str | None:
    """The name that the target has in some cohorts; None if they tell of shadows only.

    Raises:
        PlanError: They tell of several models, and none is called target.
    """
    if TARGET in cohorts.models:
        return TARGET
    named = [name for name in cohorts.models if not name.startswith(f"{SHADOW}-")]
    if len(named) > 1:
        raise PlanError(
            f"The cohorts name the models {', '.join(named)}, and none is called {TARGET!r}.",
            do=f"Rename the one that is audited to {TARGET!r}.",
        )
    return named[0] if named else None


def mean_threshold(members: Scores) -> float:
    """The mean score of what was trained on: the paper's threshold μ, for those who know it."""
    return float(np.mean(members.values))
