"""Neighbours: the controls nearest to each audited record, by their content, independently of any model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from recollect.audits.common.unicode_words import UNSPACED
from recollect.audits.removal.confidence_scores import Flags, UnitScores
from recollect.corpora.cohorts import Unit
from recollect.corpora.record import Record
from recollect.signals.evidence import AUDITED, CONTROLS, Evidence
from recollect.stats.groups import Floats
from recollect.stats.two_sample_tests import mann_whitney

if TYPE_CHECKING:
    from recollect.audits.removal.audit import RemovalAudit


NEAREST: Final = 3
"""So many controls represent an audited record: with more, controls of another kind are among them; with fewer, chance
hides what is in (`studies/removal`)."""


BLOCK: Final = 512
"""Records whose distances are in memory at once."""
FEATURES: Final = 2**12
"""Buckets that words are hashed to."""
PEERS: Final = 50
"""So many controls are as far from other controls as an audited record is."""
MIN_CHOICE: Final = 10
"""Neighbours are like a record if there are at least so many times as many controls of its label."""
FAR: Final = 0.99
"""An audited record is far from all controls if it is farther than this share of them is from each other."""
SHIFT_ALPHA: Final = 0.01
"""At or below this p-value audited records count as farther from the controls than these are from each other."""
_WORD: Final = rf"[{UNSPACED}]|[^\s{UNSPACED}]+"
"""What stands between spaces; in scripts without spaces, each character."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """The nearest controls of each audited record, and of each control."""

    audited: NDArray[np.int64]
    """Indices of controls [audited, neighbours]."""
    controls: NDArray[np.int64]
    """Indices of other controls [controls, neighbours]."""
    distances: tuple[Floats, Floats]
    """How far these are on average, of each audited record and of each control."""
    candidates: float = np.inf
    """Among how many controls those of a typical audited record were found: all that have its label."""

    @property
    def few(self) -> bool:
        """Whether the nearest controls are so large a part of those of their label that hardly any were chosen."""
        return bool(self.candidates < MIN_CHOICE * self.audited.shape[1])

    @cached_property
    def far(self) -> Flags:
        """Which audited records are like no control [audited]."""
        usual = self.distances[1][np.isfinite(self.distances[1])]
        return np.asarray(self.distances[0] > (np.quantile(usual, FAR) if len(usual) else 0.0))

    @cached_property
    def nearest_weights(self) -> Floats:
        """The weight of each control, if those nearest to the audited records represent them [controls]."""
        chosen = self.audited[~self.far]
        return np.bincount(chosen.ravel(), minlength=len(self.controls)) / max(1, chosen.size)

    @cached_property
    def peer_weights(self) -> Floats:
        """The weights, if those represent them that are as far from other controls as they are [controls]."""
        order = np.argsort(self.distances[1], kind="stable")
        ordered = self.distances[1][order]
        finite = int(np.isfinite(ordered).sum())
        count = min(PEERS, finite)
        positions = np.searchsorted(ordered[:finite], self.distances[0][~self.far]) - count // 2
        # a window of the ordered controls begins at each place: added up by its two ends
        steps = np.zeros(len(order) + 1)
        starts = np.clip(positions, 0, finite - count)
        np.add.at(steps, starts, 1.0)
        np.subtract.at(steps, starts + count, 1.0)
        weights = np.empty(len(order))
        weights[order] = np.cumsum(steps)[:-1] / max(1, count * len(starts))
        return weights

    def move_to_neighbours(self, weights: Floats) -> Floats:
        """The weights, if every weighted control is represented by its own neighbours [controls]."""
        count = self.controls.shape[1]
        shared = np.repeat(weights / count, count)
        return np.asarray(np.bincount(self.controls.ravel(), weights=shared, minlength=len(self.controls)))

    @cached_property
    def corrected_weights(self) -> Floats:
        """The weights by which the controls stand for the audited records, bias-corrected for easier neighbours.

        The nearest of many are easier than the record itself. By how much, controls show that are as far from their own
        neighbours as the audited records are: the difference is added, so that weights may be negative.
        """
        return self.nearest_weights + self.peer_weights - self.move_to_neighbours(self.peer_weights)

    @cached_property
    def shifted(self) -> bool:
        """Whether the audited records are nearer to controls, or farther from them, than controls from each other."""
        sides = [side[np.isfinite(side)] for side in self.distances]
        return min(map(len, sides)) >= 2 and mann_whitney(*sides, alternative="two-sided").p <= SHIFT_ALPHA


def find_neighbours(audited: Sequence[Record], controls: Sequence[Record], count: int) -> Neighbours:
    """The nearest controls of each audited record, and of each control, among those of the same label.

    Args:
        audited: The audited records.
        controls: The controls.
        count: How many neighbours each has.
    """
    ours, theirs = _extract_neighbour_features(audited, controls)
    labels = [[record.label for record in side] for side in (audited, controls)]
    codes = {label: i for i, label in enumerate(dict.fromkeys([*labels[1], *labels[0]]))}
    a, b = (np.array([codes[label] for label in side], dtype=np.int64) for side in labels)
    count = min(count, max(1, len(controls) - 1))
    near, distance = _find_nearest_neighbours(ours, theirs, (a, b), count, itself=False)
    among, usual = _find_nearest_neighbours(theirs, theirs, (b, b), count, itself=True)
    candidates = float(np.median(np.bincount(b, minlength=len(codes))[a]))
    return Neighbours(audited=near, controls=among, distances=(distance, usual), candidates=candidates)


def _find_nearest_neighbours(
    ours: Floats, theirs: Floats, labels: tuple[NDArray[np.int64], NDArray[np.int64]], count: int, *, itself: bool
) -> tuple[NDArray[np.int64], Floats]:
    """Indices of the nearest neighbours [ours, count] and their mean distance; infinite for too rare a label."""
    found, far = np.empty((len(ours), count), dtype=np.int64), np.empty(len(ours))
    for label in np.unique(labels[0]):
        mine, same = np.flatnonzero(labels[0] == label), np.flatnonzero(labels[1] == label)
        # where too few have the label, others fill the row, at an infinite distance
        among = np.concatenate([same, np.flatnonzero(labels[1] != label)[:count]])
        for positions in np.split(mine, range(BLOCK, len(mine), BLOCK)):
            table = _measure_distances(ours[positions], theirs[among])
            table[:, len(same) :] = np.inf
            if itself:
                table[positions[:, None] == among[None]] = np.nan  # sorted last
            order = find_smallest_distances(table, count)
            found[positions] = among[order]
            far[positions] = np.take_along_axis(table, order, axis=1).mean(axis=1)
    return found, far


def find_smallest_distances(table: Floats, count: int) -> NDArray[np.int64]:
    """The nearest neighbours: indices of the smallest distances in each row; ties are broken alike in any block."""
    found = np.argpartition(table, count - 1, axis=1)[:, :count]
    values = np.take_along_axis(table, found, axis=1)
    found = np.take_along_axis(found, np.lexsort((found, values), axis=1), axis=1)
    # where more equal the last one than there is room for, the whole row is sorted
    tied = (table <= values.max(axis=1, keepdims=True)).sum(axis=1) != count
    found[tied] = np.argsort(table[tied], axis=1, kind="stable")[:, :count]
    return found


def _measure_distances(ours: Floats, theirs: Floats) -> Floats:
    """How far each of ours is from each of theirs, to find neighbours [ours, theirs]."""
    squares = np.square(ours).sum(axis=1)[:, None] + np.square(theirs).sum(axis=1)[None] - 2 * ours @ theirs.T
    found: Floats = np.sqrt(np.maximum(squares, 0))
    return found


def _extract_neighbour_features(audited: Sequence[Record], controls: Sequence[Record]) -> tuple[Floats, Floats]:
    """What neighbours are near by: the values of arrays; the words of texts, hashed, each text of length one."""
    if controls[0].array is not None:
        both = [
            np.stack([np.ravel(np.asarray(r.array, dtype=np.float64)) for r in side]) for side in (audited, controls)
        ]
        return both[0], both[1]
    from sklearn.feature_extraction.text import HashingVectorizer

    words: Any = HashingVectorizer(n_features=FEATURES, token_pattern=_WORD, alternate_sign=False, norm="l2")
    ours, theirs = (
        words.transform([f"{r.context_text} {r.scored_text}" for r in side]) for side in (audited, controls)
    )
    return ours.toarray(), theirs.toarray()


def choose_neighbours(audit: RemovalAudit, evidence: Evidence, scores: UnitScores, unit: Unit) -> Neighbours | None:
    """The neighbours among the controls that represent each audited record; None if all represent it alike."""
    count = NEAREST if audit.neighbours is None else audit.neighbours
    labelled = all(record.kind == "labelled" for record in evidence.corpora[AUDITED])
    if not count or unit != "record" or (audit.neighbours is None and not labelled):
        return None
    sides = []
    for role, scored in ((AUDITED, scores.audited), (CONTROLS, scores.controls)):
        by_id = {record.id: record for record in evidence.corpora[role]}
        sides.append([by_id[name] for name in scored.records])
    return find_neighbours(sides[0], sides[1], count)
