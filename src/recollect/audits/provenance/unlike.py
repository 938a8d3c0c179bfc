"""Is a person like the calibration users at all? If they can be told apart without the target, a p-value means nothing.

One person is looked at by how they write: the length of texts, how rare and how hard (to the shadows) their words are.
Many people together are told apart from the calibration users by their words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recollect.audits.common.comparability import SHIFT_ALPHA, measure_separability, sample_records
from recollect.audits.provenance.words import Codes, Floats, Words
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData

FAR = 4.0
"""So many times the usual spread of the calibration users, and beyond all of them, is unlike them."""
GROUP = 20
"""So many people, at least, are compared as a group: with fewer, chance alone tells them apart."""
APART = 0.6
"""From this AUC on a difference of words is worth a word: with many people a smaller one is soon significant."""
_QUARTILES = 1.349
"""How far apart the quartiles of a normal distribution are, in standard deviations."""


def unlike(words: Words, most: int, tested: Codes, against: Codes) -> list[str]:
    """In what each of some people is unlike all calibration users; nothing if in nothing.

    Args:
        words: Of everybody.
        most: From how many texts of each.
        tested: The places of these people among the users.
        against: The places of the calibration users.
    """
    said: list[list[str]] = [[] for _ in tested]
    for (less, more), values in _habits(words, most).items():
        usual = values[against]
        low, middle, high = np.percentile(usual, [25, 50, 75])
        far = FAR * (high - low) / _QUARTILES
        beyond = {
            less: (values[tested] < usual.min()) & (values[tested] < middle - far),
            more: (values[tested] > usual.max()) & (values[tested] > middle + far),
        }
        for name, who in beyond.items():
            for place in np.flatnonzero(who).tolist():
                said[place] += [name] * bool(name)
    return [", ".join(each) for each in said]


def _habits(words: Words, most: int) -> dict[tuple[str, str], Floats]:
    """How everybody writes, by what it is called to be low and to be high; the target has no say in it [users]."""
    within = words.text < most
    user, users = words.user[within], len(words.users)
    count = np.maximum(1, np.bincount(user, minlength=users))
    found = {
        ("shorter texts", "longer texts"): np.log(count / np.clip(words.texts, 1, most)),
        ("rarer words", "commoner words"): np.bincount(user, np.log1p(words.count[within]), users) / count,
        # who was in training has fewer words that the target does not know, and is not unlike others for it
        ("", "more unknown words"): words.unknown / np.maximum(1, words.unknown + words.counts()),
    }
    if len(words.log_rank) > 1:
        ranks = words.log_rank[1:, within]
        hardness = np.where(np.isfinite(ranks), ranks, 0.0).mean(axis=0)
        found["easier words", "harder words"] = np.bincount(user, hardness, users) / count
    return found


def group_shift(people: Corpus, calibration: Corpus) -> str:
    """What is to be said if many people together can be told from the calibration users by their words; else nothing.

    Args:
        people: The texts of the audited people that were asked about.
        calibration: Those of the calibration users.
    """
    sides = [sample_records(people), sample_records(calibration)]
    if min(len(_owners(side)) for side in sides) < GROUP:
        return ""
    try:
        told = measure_separability(sides[0], sides[1], confidence=0.95)
    except NotEnoughData:
        return ""
    if told.p > SHIFT_ALPHA or told.effect.value < APART:
        return ""
    return (
        f"The audited people can be told from the calibration users by their words alone (AUC {told.effect.value:.2f}, "
        f"p = {told.p:.2g}), without the target: they are not alike, and p-values may be too small for that reason."
    )


def _owners(records: Sequence[Record]) -> set[str]:
    """Whose records they are."""
    return {record.owner for record in records}
