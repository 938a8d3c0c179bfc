"""From scores to decisions: p-values against calibration users, corrected for the number of people; the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.audits.provenance.alignment import Codes, Floats, WordRanks
from recollect.audits.provenance.comparability import find_differences
from recollect.results.result import Outcome
from recollect.stats.requirements import required_controls
from recollect.stats.significance import benjamini_hochberg, conformal_p


class Scorer(Protocol):
    """What a method is: evidence of training for every user whose texts the target scored."""

    def score_users(self, most: int) -> Floats:
        """The score of each user, audited ones first, from their first so many texts; higher is more evidence."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """What was decided about each audited person."""

    users: tuple[str, ...]
    score: Floats
    """NaN for people with too little text."""
    p: Floats
    """The share of calibration users that score as high; NaN for people who cannot be tested."""
    corrected: Floats
    """Among people for whom it is at most α, at most a share α is expected to be false; NaN where p is not valid."""
    flagged: NDArray[np.bool_]
    words: Codes
    texts: Codes
    differences: tuple[str, ...]
    """In what each is unlike all calibration users, so that the p-value is not valid; empty for most people."""
    compared_with: Codes
    """With how many calibration users each was compared."""
    calibration: Floats
    """The scores of the calibration users from as many texts as the longest person has; NaN for too little text."""

    @property
    def tested(self) -> NDArray[np.bool_]:
        """Who has a p-value."""
        return ~np.isnan(self.p)

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Who has a valid p-value: tested, and like the calibration users."""
        return ~np.isnan(self.corrected)

    @property
    def highest(self) -> int:
        """How many people score above every calibration user they were compared with."""
        return int((self.p[self.valid] * (1 + self.compared_with[self.valid]) < 1.5).sum())


def decide(scorer: Scorer, words: WordRanks, people: int, *, alpha: float, least: int) -> Decisions:
    """Compare every person with calibration users from equally many texts.

    Args:
        scorer: The method.
        words: Of the audited people, and then of the calibration users.
        people: How many of the users are audited.
        alpha: The false discovery rate.
        least: How many words a user must have to be tested.
    """
    audited = np.arange(len(words.users)) < people
    score, p = np.full(people, np.nan), np.full(people, np.nan)
    compared_with = np.zeros(people, dtype=np.int64)
    calibration = np.full(len(words.users) - people, np.nan)
    differences = np.full(people, "", dtype=object)
    for most in np.unique(words.texts[:people]).tolist():
        enough = words.count_words(most) >= least
        found = scorer.score_users(most)
        tested = np.flatnonzero(audited & enough & (words.texts == most))
        against = np.flatnonzero(~audited & enough & (words.texts >= most))
        score[tested], compared_with[tested] = found[tested], len(against)
        if len(against) >= required_controls(alpha):
            p[tested] = conformal_p(found[tested], found[against])
            differences[tested] = find_differences(words, most, tested, against)
        calibration = np.where(enough, found, np.nan)[people:]
    corrected = np.full(people, np.nan)
    valid = ~np.isnan(p) & (differences == "")
    corrected[valid] = benjamini_hochberg(p[valid])
    return Decisions(
        users=words.users[:people],
        score=score,
        p=p,
        corrected=corrected,
        flagged=np.nan_to_num(corrected, nan=1.0) <= alpha,
        words=words.count_words()[:people],
        texts=words.texts[:people],
        differences=tuple(differences.tolist()),
        compared_with=compared_with,
        calibration=calibration,
    )


def decide_outcome(decisions: Decisions, *, least: int) -> tuple[Outcome, str | None]:
    """Whether any person's texts were used; and a code if that is inconclusive.

    Args:
        decisions: About each person.
        least: How many words a person must have to be tested.
    """
    if not decisions.tested.any():
        return "inconclusive", "too_little_text" if decisions.words.max(initial=0) < least else "too_few_controls"
    if not decisions.valid.any():
        return "inconclusive", "not_comparable"
    if decisions.flagged.any():
        return "found", None
    return ("inconclusive", "no_power") if decisions.highest else ("not_found", None)
