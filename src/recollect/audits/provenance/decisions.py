"""From p-values to decisions: corrected for the number of people, who is flagged, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.audits.common.matching import Matching
from recollect.audits.provenance.comparison import ComparisonScorer, Scored, TestRule, compare_people
from recollect.audits.provenance.text_amounts import TextAmounts
from recollect.audits.provenance.word_alignment import Codes, Floats
from recollect.results.result import Outcome
from recollect.stats.requirements import required_controls
from recollect.stats.significance import benjamini_hochberg

OTHER_PERIOD = "another period"
"""Why nobody is accused who scores high, where few calibration users wrote in the same periods."""


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
    """In what each is unlike all calibration users, so that the p-value is not valid; empty for most people. Who would
    be accused beside calibration users of other periods is unlike these for `OTHER_PERIOD`."""
    withheld: NDArray[np.bool_]
    """Who would be flagged if enough calibration users had written in the same periods."""
    compared_with: Codes
    """With how many calibration users each was compared."""
    matched: NDArray[np.bool_]
    """Who was compared from as many words as the calibration users have, cut where they differ."""
    cut: NDArray[np.bool_]
    """Who was cut, several times, because the calibration users have less: their p-value is twice a median."""
    calibrating: tuple[str, ...]
    """The calibration users."""
    calibration: Floats
    """Their scores from as many texts as the longest person has; NaN for too little text."""

    @property
    def tested(self) -> NDArray[np.bool_]:
        """Which people have a p-value of provenance."""
        return ~np.isnan(self.p)

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Which people have a valid p-value of provenance: tested, and like the calibration users."""
        return ~np.isnan(self.corrected)

    @property
    def smallest(self) -> Floats:
        """The smallest p-value that each of the people could have had [people]."""
        return np.asarray(np.minimum(1.0, (1 + self.cut) / (1 + self.compared_with)))

    @property
    def highest(self) -> NDArray[np.bool_]:
        """Who scores above every calibration user they were compared with [people]."""
        return self.valid & (np.nan_to_num(self.p, nan=1.0) < 1.5 * self.smallest)


def decide(scorer: ComparisonScorer, amounts: TextAmounts, matching: Matching, rule: TestRule) -> Decisions:
    """The decision about each audited person of a provenance audit.

    Args:
        scorer: The method.
        amounts: How much everybody has.
        matching: Who is compared with whom.
        rule: From when on somebody is tested, and at which level.
    """
    people, words = amounts.people, amounts.words
    found = compare_people(scorer, amounts, matching, rule, amounts.counts)
    flagged = _flag(correct_for_people(found, np.arange(people)), rule.alpha)
    # what a model knows of a period it knows of everybody's texts of that period, trained on or not
    alone = amounts.count_contemporaries() < required_controls(rule.alpha)
    alone &= np.nan_to_num(found.p[:people], nan=1.0) <= rule.alpha
    alone &= found.differences[:people] == ""
    found.differences[:people][alone] = OTHER_PERIOD
    corrected = correct_for_people(found, np.arange(people))
    return Decisions(
        users=words.users[:people],
        score=found.score[:people],
        p=found.p[:people],
        corrected=corrected,
        flagged=_flag(corrected, rule.alpha),
        withheld=flagged & alone,
        words=words.count_words()[:people],
        texts=words.texts[:people],
        differences=tuple(found.differences[:people].tolist()),
        compared_with=found.compared_with[:people],
        matched=found.matched[:people],
        cut=found.cut[:people],
        calibrating=words.users[people:],
        calibration=found.calibration[people:],
    )


def _flag(corrected: Floats, alpha: float) -> NDArray[np.bool_]:
    """About whom the decision is that their texts were used, from corrected p-values."""
    return np.asarray(np.nan_to_num(corrected, nan=1.0) <= alpha)


def correct_for_people(found: Scored, people: Codes) -> Floats:
    """The p-values that decide about some people, corrected for their number; NaN where they are not valid."""
    corrected = np.full(len(people), np.nan)
    valid = ~np.isnan(found.p[people]) & (found.differences[people] == "")
    corrected[valid] = benjamini_hochberg(found.p[people][valid])
    return corrected


def decide_outcome(decisions: Decisions, *, least: int) -> tuple[Outcome, str | None]:
    """The decision whether any person's texts were used; and a code if that is inconclusive.

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
    if decisions.withheld.any():
        return "inconclusive", "not_comparable"
    return ("inconclusive", "no_power") if decisions.highest.any() else ("not_found", None)
