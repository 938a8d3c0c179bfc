"""From scores to decisions: p-values against calibration users, corrected for the number of people; the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.audits.common.matching import Matching, Stratum, combine_draws
from recollect.audits.provenance.text_amounts import Flags, TextAmounts
from recollect.audits.provenance.word_alignment import Codes, Floats, WordRanks
from recollect.audits.provenance.writing_habits import find_unusual_habits
from recollect.results.result import Outcome
from recollect.stats.requirements import required_controls
from recollect.stats.significance import benjamini_hochberg, conformal_p

_NOBODY: Codes = np.empty(0, dtype=np.int64)
MORE = 1.25
"""From so many times the words of the calibration users on, a person is cut."""


@dataclass(frozen=True, kw_only=True)
class TestRule:
    """From when on somebody is tested, and at which level."""

    alpha: float
    """The false discovery rate."""
    least: int
    """How many words that all models know a person must have."""


class Scorer(Protocol):
    """What a method is: evidence of training for every user whose texts the target scored."""

    @property
    def words(self) -> WordRanks:
        """Of the audited people, and then of the calibration users."""

    def score_users(self, most: int, within: Flags | None = None) -> Floats:
        """The score of each user from their first so many texts, or from some words; higher is more evidence."""


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
        """Who has a p-value."""
        return ~np.isnan(self.p)

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Who has a valid p-value: tested, and like the calibration users."""
        return ~np.isnan(self.corrected)

    @property
    def smallest(self) -> Floats:
        """The smallest p-value that each could have had [people]."""
        return np.asarray(np.minimum(1.0, (1 + self.cut) / (1 + self.compared_with)))

    @property
    def highest(self) -> NDArray[np.bool_]:
        """Who scores above every calibration user they were compared with [people]."""
        return self.valid & (np.nan_to_num(self.p, nan=1.0) < 1.5 * self.smallest)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scored:
    """People beside calibration users: scores from equally many texts and words, and p-values; of all users."""

    score: Floats
    p: Floats
    compared_with: Codes
    matched: NDArray[np.bool_]
    cut: NDArray[np.bool_]
    differences: NDArray[np.object_]
    calibration: Floats


def score_people(scorer: Scorer, amounts: TextAmounts, matching: Matching, rule: TestRule, base: Codes) -> Scored:
    """Compare people with calibration users from equal amounts.

    The number of texts is always the same, and so are periods where times are known. Whoever has more words than most
    calibration users is cut to as many, if enough of them can be compared so; `find_unusual_habits` tells the others.

    Args:
        scorer: The method.
        amounts: How much everybody has.
        matching: Who is compared with whom.
        rule: From when on somebody is tested.
        base: How many words of each text there are to begin with [users, texts].
    """
    users = len(amounts.words.users)
    found = Scored(
        score=np.full(users, np.nan),
        p=np.full(users, np.nan),
        compared_with=np.zeros(users, dtype=np.int64),
        matched=np.zeros(users, dtype=np.bool_),
        cut=np.zeros(users, dtype=np.bool_),
        differences=np.full(users, "", dtype=object),
        calibration=np.full(users, np.nan),
    )
    ours, theirs = amounts.find_units(matching)
    timed, alone = matching.cutter.timed, matching.unmatched
    whole = [ours[alone[~timed[alone]]]]
    for stratum in matching.strata:
        people, by_period = ours[stratum.members], timed[stratum.members]
        chosen = by_period | _have_more_words(people, theirs, base)
        if stratum.counts is None or not chosen.any():
            whole.append(people)
            continue
        whole.append(people[~chosen])
        if not _compare_people_cut(found, scorer, amounts, rule, (matching, stratum, people[chosen])):
            whole.append(people[chosen & ~by_period])
    _compare_people_uncut(found, scorer, amounts, rule, (np.unique(np.concatenate([_NOBODY, *whole])), theirs, base))
    return found


def _have_more_words(people: Codes, controls: Codes, base: Codes) -> NDArray[np.bool_]:
    """Who has clearly more words than the calibration users have in as many texts, by their median.

    Sums of many words scatter more in units of their standard error, because people differ: whoever has more is cut.
    Whoever has less scatters less, so that a comparison with all calibration users is valid.
    """
    texts = (base[people] > 0).sum(axis=1)
    words = np.cumsum(base[controls], axis=1)[:, np.maximum(0, texts - 1)]
    return np.asarray(base[people].sum(axis=1) > MORE * np.median(words, axis=0))


def _compare_people_uncut(
    found: Scored,
    scorer: Scorer,
    amounts: TextAmounts,
    rule: TestRule,
    sides: tuple[Codes, Codes, Codes],
) -> None:
    """People as they are, with the first texts of calibration users, as many as each of them has."""
    people, controls, base = sides
    whole = (base == amounts.counts).all(axis=1)
    texts = np.where(whole, amounts.words.texts, (base > 0).sum(axis=1))
    for most in np.unique(texts[people]).tolist():
        kept = base.copy()
        kept[controls, most:] = 0
        scores = scorer.score_users(most, amounts.select_words(scorer.words, kept))
        enough = kept.sum(axis=1) >= rule.least
        tested = people[enough[people] & (texts[people] == most)]
        against = controls[enough[controls] & (texts[controls] >= most)]
        found.score[tested], found.compared_with[tested] = scores[tested], len(against)
        if len(against) >= required_controls(rule.alpha):
            found.p[tested] = conformal_p(scores[tested], scores[against])
            within = amounts.select_words(amounts.words, kept)
            found.differences[tested] = find_unusual_habits(amounts.words, within, tested, against)
        found.calibration[controls] = np.where(enough, scores, np.nan)[controls]


def _compare_people_cut(
    found: Scored, scorer: Scorer, amounts: TextAmounts, rule: TestRule, at: tuple[Matching, Stratum, Codes]
) -> bool:
    """People and calibration users cut to the same number of texts and words; several times if people lose texts.

    False if too few calibration users can be cut to that.
    """
    matching, stratum, people = at
    theirs, kept = amounts.find_units(matching)[1], np.zeros_like(amounts.counts)
    rows, fewest, enough = [], len(theirs), np.ones(len(kept), dtype=np.bool_)
    for draw in range(stratum.draws):
        cut = matching.cut(stratum, draw)
        amounts.keep(kept, matching, cut)
        scores = scorer.score_users(stratum.records or 1, amounts.select_words(scorer.words, kept))
        enough &= (kept.sum(axis=1) >= rule.least) | ~np.isin(np.arange(len(kept)), people)
        usable = theirs[cut.usable]
        against = usable[kept[usable].sum(axis=1) >= rule.least]
        rows.append(conformal_p(scores[people], scores[against]))
        fewest = min(fewest, len(against))
    if fewest < required_controls(rule.alpha):
        return False
    tested = people[enough[people]]
    found.score[tested], found.compared_with[tested] = scores[tested], fewest
    found.matched[tested], found.cut[tested] = True, stratum.draws > 1
    found.p[tested] = combine_draws(np.stack(rows))[enough[people]]
    within = amounts.select_words(amounts.words, kept)
    found.differences[tested] = find_unusual_habits(amounts.words, within, tested, against)
    found.calibration[against] = scores[against]
    return True


def decide(scorer: Scorer, amounts: TextAmounts, matching: Matching, rule: TestRule) -> Decisions:
    """A decision about each audited person.

    Args:
        scorer: The method.
        amounts: How much everybody has.
        matching: Who is compared with whom.
        rule: From when on somebody is tested, and at which level.
    """
    people, words = amounts.people, amounts.words
    found = score_people(scorer, amounts, matching, rule, amounts.counts)
    corrected = correct_for_people(found, np.arange(people))
    return Decisions(
        users=words.users[:people],
        score=found.score[:people],
        p=found.p[:people],
        corrected=corrected,
        flagged=np.nan_to_num(corrected, nan=1.0) <= rule.alpha,
        words=words.count_words()[:people],
        texts=words.texts[:people],
        differences=tuple(found.differences[:people].tolist()),
        compared_with=found.compared_with[:people],
        matched=found.matched[:people],
        cut=found.cut[:people],
        calibrating=words.users[people:],
        calibration=found.calibration[people:],
    )


def correct_for_people(found: Scored, people: Codes) -> Floats:
    """The p-values of some people, corrected for their number; NaN where they are not valid."""
    corrected = np.full(len(people), np.nan)
    valid = ~np.isnan(found.p[people]) & (found.differences[people] == "")
    corrected[valid] = benjamini_hochberg(found.p[people][valid])
    return corrected


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
    return ("inconclusive", "no_power") if decisions.highest.any() else ("not_found", None)
