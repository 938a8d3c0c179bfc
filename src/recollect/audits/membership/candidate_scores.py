"""Scores of candidates and controls under a signal, by record or by user, and the ground truth where it is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from recollect.audits.common.duplicates import Duplicates, find_duplicates
from recollect.audits.common.ground_truth import find_members
from recollect.corpora.corpus import Corpus
from recollect.signals.evidence import AUDITED, Evidence
from recollect.signals.scores import Scores
from recollect.signals.signal import Signal, compute_scores

By = Literal["record", "user"]


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitScores:
    """One signal's scores of all units; in the order of their ids, whatever that of the corpora."""

    candidates: Scores
    controls: Scores | None
    """Held out, and no candidate's content or user among them; None where no controls are given."""
    truth: Mapping[str, bool] | None
    """Whether a candidate is a member; unknown ones are left out. None where no ground truth is given."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many were left out, by reason."""

    @property
    def members(self) -> Scores:
        """The candidates that are known members."""
        return self._select(member=True)

    @property
    def non_members(self) -> Scores:
        """The candidates that are known non-members."""
        return self._select(member=False)

    @property
    def has_both(self) -> bool:
        """Whether there are known members and known non-members among the candidates."""
        return {True, False} <= {*(self.truth or {}).values()}

    @property
    def complete(self) -> bool:
        """Whether ground truth is known for every candidate, and some are members and some are not."""
        return self.has_both and len(self.truth or {}) == len(self.candidates)

    def _select(self, *, member: bool) -> Scores:
        """The candidates for which this is known."""
        truth = self.truth or {}
        return self.candidates.select([name for name in self.candidates.records if truth.get(name) is member])

    def average_by_user(self) -> UnitScores:
        """The same by user: the mean over a user's records.

        Users of whom some records are members and others are not are left out and counted. Users of whom only some
        records are known are unknown.
        """
        known: dict[str, set[bool | None]] = {}
        for record, user in zip(self.candidates.records, self.candidates.users, strict=True):
            known.setdefault(user, set()).add((self.truth or {}).get(record))
        mixed = {user for user, values in known.items() if {True, False} <= values}
        whole = {user: values == {True} for user, values in known.items() if values in ({True}, {False})}
        users = self.candidates.average_by_user()
        return UnitScores(
            candidates=users.select([user for user in users.records if user not in mixed]),
            controls=None if self.controls is None else self.controls.average_by_user(),
            truth=None if self.truth is None else whole,
            dropped={**self.dropped, **({"users_partly_trained_on": len(mixed)} if mixed else {})},
        )


def score_candidates(
    signal: Signal, evidence: Evidence, controls: str | None, *, by: By, duplicates: Duplicates | None = None
) -> UnitScores:
    """The scores of all candidates and controls, but for texts that occur on both sides or with two users.

    Args:
        signal: What computes the scores.
        evidence: Contains all answers that the signal needs for both corpora.
        controls: The role of the corpus that sets the thresholds; None where there is none.
        by: Whether the units are records or users.
        duplicates: What is left out (`find_unscored_duplicates`); None to find it.
    """
    audited = evidence.corpora[AUDITED]
    shared = find_unscored_duplicates(evidence, controls) if duplicates is None else duplicates
    scored, known = _sort_scores(compute_scores(signal, evidence)), find_members(evidence)
    candidates = scored.select([record for record in scored.records if record not in shared.audited])
    kept, dropped = None, {"candidates_without_score": len(audited) - len(scored)}
    dropped["audited.near_duplicate"] = len(scored) - len(candidates)
    if controls is not None:
        population = evidence.corpora[controls]
        others = _rename_owners(_sort_scores(compute_scores(signal, evidence, controls)), population)
        strangers = _select_strangers(others, set(scored.users))
        kept = strangers.select([record for record in strangers.records if record not in shared.controls])
        dropped["controls_without_score"] = len(population) - len(others)
        dropped["controls_shared_with_candidates"] = len(others) - len(strangers)
        dropped["controls.near_duplicate"] = len(strangers) - len(kept)
    truth = None if known is None else known.truth_by_record(audited)
    found = UnitScores(
        candidates=candidates,
        controls=kept,
        truth=None if truth is None else {name: truth[name] for name in candidates.records if name in truth},
        dropped={reason: count for reason, count in dropped.items() if count},
    )
    return found if by == "record" else found.average_by_user()


def find_unscored_duplicates(evidence: Evidence, controls: str | None, *, by: By = "record") -> Duplicates:
    """Texts of candidates and controls that nobody owns alone, which get no score; by user also an owner's copies.

    The mean of ten copies scatters like one text, and not like the mean of ten that it would be compared with. So do
    copies without users: each would count as one more candidate.
    """
    audited = list(evidence.corpora[AUDITED])
    users = {record.user for record in audited} - {None}
    others = () if controls is None else (r for r in evidence.corpora[controls] if r.user not in users)
    return find_duplicates(audited, others, own=by == "user" or not users)


def _sort_scores(scores: Scores) -> Scores:
    """The scores of candidates or controls in the order of their ids."""
    return scores.select(sorted(scores.records))


def _rename_owners(scores: Scores, corpus: Corpus) -> Scores:
    """The scores of controls, where a record that has no user gets an owner that no candidate can have."""
    nameless = {record.id for record in corpus if record.user is None}
    users = tuple(
        f"control\x1f{record}" if record in nameless else user
        for record, user in zip(scores.records, scores.users, strict=True)
    )
    return Scores(scores.records, users, scores.values)


def _select_strangers(scores: Scores, users: set[str]) -> Scores:
    """The scores of controls that share no user with a candidate."""
    return scores.select([r for r, user in zip(scores.records, scores.users, strict=True) if user not in users])
