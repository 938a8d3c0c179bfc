"""Is a person like the calibration users? If they can be distinguished without the target, a p-value means nothing.

One person is compared by how they write: the length of texts, how rare and how hard (to the shadows) their words are.
Many people together are compared with the calibration users by their words.
"""

from __future__ import annotations

import numpy as np

from recollect.audits.common.comparability import SHIFT_ALPHA, measure_separability, sample_records
from recollect.audits.provenance.alignment import Codes, Floats, WordRanks
from recollect.corpora.corpus import Corpus
from recollect.errors import NotEnoughData
from recollect.stats.comparisons import Comparison

FAR = 4.0
"""So many standard deviations of the calibration users, and beyond all of them, is unlike them."""
GROUP = 20
"""The fewest people that are compared as a group: smaller groups differ by random variation alone."""
MIN_AUC = 0.6
"""From this AUC on a difference of words is reported: with many people a smaller one is soon significant."""
_QUARTILES = 1.349
"""How far apart the quartiles of a normal distribution are, in standard deviations."""


def find_differences(words: WordRanks, most: int, tested: Codes, against: Codes) -> list[str]:
    """In what each of some people is unlike all calibration users; empty if in nothing.

    Args:
        words: Of all people.
        most: From how many texts of each.
        tested: These people, by their indices among the users.
        against: The calibration users, likewise.
    """
    found: list[list[str]] = [[] for _ in tested]
    for (less, more), values in _measure_habits(words, most).items():
        usual = values[against]
        low, middle, high = np.percentile(usual, [25, 50, 75])
        far = FAR * (high - low) / _QUARTILES
        beyond = {
            less: (values[tested] < usual.min()) & (values[tested] < middle - far),
            more: (values[tested] > usual.max()) & (values[tested] > middle + far),
        }
        for name, who in beyond.items():
            for index in np.flatnonzero(who).tolist():
                found[index] += [name] * bool(name)
    return [", ".join(each) for each in found]


def _measure_habits(words: WordRanks, most: int) -> dict[tuple[str, str], Floats]:
    """Features of each person's writing, by the names of low and of high values; independent of the target [users]."""
    within = words.text < most
    user, users = words.user[within], len(words.users)
    count = np.maximum(1, np.bincount(user, minlength=users))
    found = {
        ("shorter texts", "longer texts"): np.log(count / np.clip(words.texts, 1, most)),
        ("rarer words", "commoner words"): np.bincount(user, np.log1p(words.frequency[within]), users) / count,
        # members have fewer words that the target does not know, and are not unlike others for it
        ("", "more unknown words"): words.unknown / np.maximum(1, words.unknown + words.count_words()),
    }
    if len(words.log_rank) > 1:
        ranks = words.log_rank[1:, within]
        hardness = np.where(np.isfinite(ranks), ranks, 0.0).mean(axis=0)
        found["easier words", "harder words"] = np.bincount(user, hardness, users) / count
    return found


def find_group_shift(people: Corpus, calibration: Corpus) -> Comparison | None:
    """How well many people together are separated from the calibration users by their words; None if they are not.

    Args:
        people: The queries of the audited people.
        calibration: Those of the calibration users.
    """
    sides = [sample_records(people), sample_records(calibration)]
    if min(len({record.owner for record in side}) for side in sides) < GROUP:
        return None
    try:
        found = measure_separability(sides[0], sides[1], confidence=0.95)
    except NotEnoughData:
        return None
    return None if found.p > SHIFT_ALPHA or found.effect.value < MIN_AUC else found
