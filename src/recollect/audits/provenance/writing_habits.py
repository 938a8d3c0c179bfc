"""Writing habits: is a person like the calibration users? If not, without the target, a p-value means nothing.

One person is compared by how they write: the length of texts, how rare and how hard (to the shadows) their words are.
The guard (`audits.common.guard`) compares all people together, or the one that there is, by dates, words and style.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recollect.audits.provenance.word_alignment import Codes, Floats, WordRanks

Flags = NDArray[np.bool_]

FAR = 4.0
"""So many standard deviations of the calibration users, and beyond all of them, is unlike them."""
_QUARTILES = 1.349
"""How far apart the quartiles of a normal distribution are, in standard deviations."""


def find_unusual_habits(words: WordRanks, within: Flags, tested: Codes, against: Codes) -> list[str]:
    """In which writing habits each of some people is unlike all calibration users; empty if in none.

    Args:
        words: Of all people.
        within: Which words count [words].
        tested: These people, by their indices among the users.
        against: The calibration users, likewise.
    """
    found: list[list[str]] = [[] for _ in tested]
    for (less, more), values in _measure_habits(words, within).items():
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


def _measure_habits(words: WordRanks, within: Flags) -> dict[tuple[str, str], Floats]:
    """The habits of each person's writing, by the names of low and of high values; independent of the target."""
    chosen, users = np.flatnonzero(within), len(words.users)
    user = words.user[chosen]
    count = np.maximum(1, np.bincount(user, minlength=users))
    found = {
        ("shorter texts", "longer texts"): np.log(count / _count_texts_with_words(words, chosen)),
        ("rarer words", "commoner words"): np.bincount(user, words.commonness[chosen], users) / count,
        # members have fewer words that the target does not know, and are not unlike others for it
        ("", "more unknown words"): words.unknown / np.maximum(1, words.unknown + words.count_words()),
    }
    if len(words.log_rank) > 1:
        found["easier words", "harder words"] = np.bincount(user, words.hardness[chosen], users) / count
    return found


def _count_texts_with_words(words: WordRanks, chosen: Codes) -> Codes:
    """In how many texts of each user words count, for the habit of writing long texts; at least 1 [users]."""
    texts = np.zeros((len(words.users), int(words.text.max(initial=0)) + 1), dtype=np.bool_)
    texts[words.user[chosen], words.text[chosen]] = True
    return np.asarray(np.maximum(1, texts.sum(axis=1)), dtype=np.int64)
