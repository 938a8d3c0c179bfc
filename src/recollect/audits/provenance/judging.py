"""From scores to decisions: p-values against calibration users, corrected for the number of people who asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.audits.provenance.unlike import unlike
from recollect.audits.provenance.words import Codes, Floats, Words
from recollect.stats.significance import benjamini_hochberg, conformal_p
from recollect.stats.support import controls_for_p


class Scorer(Protocol):
    """What a method is: evidence of training for every user that the target was asked about."""

    def scores(self, most: int) -> Floats:
        """The score of each user, audited ones first, from their first so many texts; higher is more evidence."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """What was decided about each audited person."""

    users: tuple[str, ...]
    score: Floats
    """NaN for whoever has too little text."""
    p: Floats
    """How often a calibration user scores as high; NaN where there is no saying."""
    corrected: Floats
    """Among people for whom it is at most α, at most a share α is expected to be false; NaN where p means nothing."""
    flagged: NDArray[np.bool_]
    words: Codes
    texts: Codes
    unlike: tuple[str, ...]
    """In what each is unlike all calibration users, so that the p-value promises nothing; empty for most people."""
    compared: Codes
    """With how many calibration users each was compared."""
    controls: Floats
    """The scores of the calibration users from as many texts as the longest person has; NaN for too little text."""

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Who has a p-value."""
        return ~np.isnan(self.p)

    @property
    def sound(self) -> NDArray[np.bool_]:
        """Who has a p-value that means something."""
        return ~np.isnan(self.corrected)


def decided(scorer: Scorer, words: Words, people: int, *, alpha: float, least: int) -> Decisions:
    """Compare every person with calibration users from equally many texts.

    Args:
        scorer: The method.
        words: Of the audited people, and then of the calibration users.
        people: How many of the users are audited.
        alpha: The share of false accusations that is allowed.
        least: How many words a user must have to be judged.
    """
    audited = np.arange(len(words.users)) < people
    score, p = np.full(people, np.nan), np.full(people, np.nan)
    compared = np.zeros(people, dtype=np.int64)
    controls = np.full(len(words.users) - people, np.nan)
    differing = np.full(people, "", dtype=object)
    for most in np.unique(words.texts[:people]).tolist():
        enough = words.counts(most) >= least
        found = scorer.scores(most)
        tested = np.flatnonzero(audited & enough & (words.texts == most))
        against = np.flatnonzero(~audited & enough & (words.texts >= most))
        score[tested], compared[tested] = found[tested], len(against)
        if len(against) >= controls_for_p(alpha):
            p[tested] = conformal_p(found[tested], found[against])
            differing[tested] = unlike(words, most, tested, against)
        controls = np.where(enough, found, np.nan)[people:]
    corrected = np.full(people, np.nan)
    sound = ~np.isnan(p) & (differing == "")
    corrected[sound] = benjamini_hochberg(p[sound])
    return Decisions(
        users=words.users[:people],
        score=score,
        p=p,
        corrected=corrected,
        flagged=np.nan_to_num(corrected, nan=1.0) <= alpha,
        words=words.counts()[:people],
        texts=words.texts[:people],
        unlike=tuple(differing.tolist()),
        compared=compared,
        controls=controls,
    )
