"""People against calibration users: scores from equally many texts and words, p-values, and who cannot be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.audits.common.matching import Matching, Stratum, combine_draws
from recollect.audits.provenance.text_amounts import Flags, TextAmounts
from recollect.audits.provenance.word_alignment import Codes, Floats, WordRanks
from recollect.audits.provenance.writing_habits import find_unusual_habits
from recollect.stats.requirements import required_controls
from recollect.stats.significance import conformal_p

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


class ComparisonScorer(Protocol):
    """What a method is: evidence of training for every user whose texts the target scored."""

    @property
    def words(self) -> WordRanks:
        """Of the audited people, and then of the calibration users."""

    def score_users(self, most: int, within: Flags | None = None) -> Floats:
        """The score of each user from their first so many texts, or from some words; higher is more evidence."""


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


def compare_people(
    scorer: ComparisonScorer, amounts: TextAmounts, matching: Matching, rule: TestRule, base: Codes
) -> Scored:
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
    leave_out_hopeless(found, rule.alpha)
    return found


def leave_out_hopeless(found: Scored, alpha: float) -> None:
    """Take back the comparison of people whose p-value could never be α or less, unless that holds for everybody.

    Whoever is cut needs about twice as many calibration users as others; with fewer "no sign" would say nothing.
    """
    tested = ~np.isnan(found.p)
    hopeless = tested & ((1 + found.cut) / (1 + found.compared_with) > alpha + 1e-12)
    if (tested & ~hopeless).any():
        found.p[hopeless] = np.nan


def _have_more_words(people: Codes, controls: Codes, base: Codes) -> NDArray[np.bool_]:
    """Which people a comparison cuts: who has clearly more words in as many texts than calibration users, by median.

    Sums of many words scatter more in units of their standard error, because people differ: whoever has more is cut.
    Whoever has less scatters less, so that a comparison with all calibration users is valid.
    """
    texts = (base[people] > 0).sum(axis=1)
    numbers, of_each = np.unique(np.maximum(0, texts - 1), return_inverse=True)
    usual = np.median(np.cumsum(base[controls], axis=1)[:, numbers], axis=0)  # [numbers of texts]
    return np.asarray(base[people].sum(axis=1) > MORE * usual[of_each])


def _compare_people_uncut(
    found: Scored,
    scorer: ComparisonScorer,
    amounts: TextAmounts,
    rule: TestRule,
    sides: tuple[Codes, Codes, Codes],
) -> None:
    """Compare people as they are, with the first texts of calibration users, as many as each of them has."""
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
    found: Scored, scorer: ComparisonScorer, amounts: TextAmounts, rule: TestRule, at: tuple[Matching, Stratum, Codes]
) -> bool:
    """Compare people and calibration users cut to the same number of texts and words; repeatedly if people lose texts.

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
