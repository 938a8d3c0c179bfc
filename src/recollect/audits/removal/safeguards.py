"""The safeguards of removal: the guard (are both sides comparable), the power of the design, and a placebo.

In the placebo controls take the place of the audited, by the same test. With neighbours, controls that represent the
audited records play them, each beside its own nearest other controls: so it shows whether being near to controls, or of
another kind than most, suffices to be accused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from recollect import labels
from recollect.audits.common.amounts import find_atypical
from recollect.audits.common.guard import Comparability, add_guard, check_comparable
from recollect.audits.common.placebo import judge_alarms
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.common.unicode_words import list_words
from recollect.audits.removal.confidence_scores import Flags, UnitScores
from recollect.audits.removal.mixture import Mixture
from recollect.audits.removal.mixture_means import MixtureMean, compare_mixture_means
from recollect.audits.removal.neighbours import Neighbours
from recollect.corpora.cohorts import Unit
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.corpora.times import Period
from recollect.digests import digest
from recollect.errors import NotEnoughData
from recollect.results.result import Guard, GuardCheck, Placebo, Power
from recollect.signals.evidence import AUDITED, CONTROLS, Evidence
from recollect.signals.scores import Scores
from recollect.stats.groups import Floats
from recollect.stats.requirements import required_controls
from recollect.streams import stream

NOT_LIKE_ANY: Final = (
    "No audited record is like any control: controls of the same kind are needed, with the same labels."
)


NO_PLACEBO: Final = (
    "All controls are compared as they are, with equal weight: a placebo would be a plain division of the controls, "
    "which always passes and proves nothing. The guard compares amounts, lengths, words and dates."
)
NO_PLACEBO_OF_PEOPLE: Final = (
    "Every person's score is compared with those of control users of like amounts by rank, and nothing is chosen: a "
    "placebo would be a plain division of the controls, which always passes and proves nothing."
)
NO_PLACEBO_AS_PUBLISHED: Final = (
    "The published method states no error rate that a placebo could examine; `calibrated` does."
)
RUNS: Final = 100
LIKE: Final = 1.5
"""Up to this factor, records per user and words per record are alike."""
MIN_CONTROLS: Final = 40
"""Of fewer, half of them too few remain to play a set and to be compared with."""
MAX_BLIND: Final = 200
"""Records of either side by which it is told, where each has neighbours, how well content separates the two."""


def play_placebo(controls: Scores, neighbours: Neighbours | None, *, size: int, seed: int, alpha: float) -> Placebo:
    """Safeguard of removal, the placebo: how often controls are called still there, each beside its nearest others.

    Args:
        controls: Member probabilities of the controls under the target.
        neighbours: The controls that represent each audited record, and each control; None if all do alike: then
            nothing is chosen that a placebo could examine.
        size: Audited units.
        seed: Of the draws.
        alpha: The significance level.
    """
    if neighbours is None:
        return Placebo(status="not_run", reason=NO_PLACEBO)
    usable = np.flatnonzero(neighbours.nearest_weights > 0)
    if len(usable) < max(MIN_CONTROLS, required_controls(alpha) + 2):
        return Placebo(
            status="not_run",
            reason=f"{len(usable):,} controls can represent the audited units; a placebo needs {MIN_CONTROLS} of them.",
        )
    rng = stream(seed, *labels.STREAM_REMOVAL_PLACEBO)
    count = min(size, len(usable) // 2)
    played = np.zeros((RUNS, len(controls)), dtype=np.bool_)
    shares = neighbours.nearest_weights[usable] / neighbours.nearest_weights[usable].sum()
    for row in played:
        row[rng.choice(usable, size=count, replace=False, p=shares)] = True
    alarms = np.array([_is_accused(controls.values, row, neighbours, alpha=alpha) for row in played])
    return judge_alarms(alarms, played, seed=seed, alpha=alpha)


def _is_accused(values: Floats, playing: Flags, neighbours: Neighbours, *, alpha: float) -> bool:
    """Safeguard of removal: whether the placebo of removal would call a draw of controls still there."""
    chosen = neighbours.controls[playing].ravel()
    weights = np.bincount(chosen, minlength=len(values)) * ~playing
    if not weights.any():
        return False
    ours, nearest = MixtureMean.of(values[playing]), MixtureMean.of(values, weights / weights.sum())
    return compare_mixture_means(ours.with_variance_of(nearest), nearest) <= alpha


def find_like_controls(evidence: Evidence, scores: UnitScores) -> Flags:
    """Safeguard of removal: with which controls each person is compared, by amounts alone [audited, controls].

    A mean of two records scatters more than means of thirty, and short texts score otherwise than long ones: somebody
    who has less than most controls would be decided about by how much there is of them. Such a person is compared with
    controls that have no more records, or records of like length; everybody else with all.
    """
    counts = [dict[str, list[int]]() for _ in range(2)]
    for role, found in zip((AUDITED, CONTROLS), counts, strict=True):
        for record in evidence.corpora[role]:
            found.setdefault(record.owner, []).append(len(list_words(record.scored_text)))
    like = np.ones((len(scores.audited), len(scores.controls)), dtype=np.bool_)
    for measure, both_sides in ((len, False), (np.mean, True)):
        ours, theirs = (
            np.array([measure(found[name]) for name in side.records], dtype=np.float64)
            for side, found in zip((scores.audited, scores.controls), counts, strict=True)
        )
        near = theirs <= ours[:, None] * LIKE
        if both_sides:
            near &= theirs * LIKE >= ours[:, None]
        like &= near | ~find_atypical(ours, theirs, both_sides=both_sides)[:, None]
    return like


def sample_guarded_records(corpus: Corpus, wanted: frozenset[str] | None = None) -> list[Record]:
    """Safeguard of removal, the guard: the records of a corpus in an order that is random and independent of theirs.

    Args:
        corpus: The corpus.
        wanted: The ids to choose from; None for all.
    """
    kept = [record for record in corpus if wanted is None or record.id in wanted]
    return sorted(kept, key=lambda record: digest(labels.DIGEST_SHIFT, record.id))


def check_sides(
    evidence: Evidence, scores: UnitScores, unit: Unit, *, period: Period, sampled: bool = False
) -> Comparability | NotEnoughData:
    """Safeguard of removal, the guard: how the audited compare with the controls without the model, if known."""
    sides = []
    for role, scored in ((AUDITED, scores.audited), (CONTROLS, scores.controls)):
        kept, corpus = set(scored.records), evidence.corpora[role]
        chosen = frozenset(r.id for r in corpus if (r.owner if unit == "user" else r.id) in kept)
        sides.append(
            sample_guarded_records(corpus, chosen)[:MAX_BLIND] if sampled else [r for r in corpus if r.id in chosen]
        )
    try:
        return check_comparable(*sides, by=unit, seed=evidence.seed, period=period)
    except NotEnoughData as refusal:
        return refusal


def state_power(mixture: Mixture) -> Power:
    """Safeguard of removal, power: what its design could have found."""
    enough = mixture.find_sufficient_size()
    return Power(
        minimum_detectable_effect=mixture.find_detectable_share(),
        effect_unit="share still in",
        needed={} if enough is None else {"audited": enough},
    )


def add_guard_of_removal(
    builder: ResultBuilder,
    found: Comparability | NotEnoughData,
    neighbours: Neighbours | None,
    *,
    withheld: Sequence[str] = (),
) -> None:
    """Write the guard into a removal result: how the set compares with the controls, and what is withheld.

    With neighbours, each audited record is compared with the controls nearest to it, so that controls of another kind
    are no obstacle: only a set of which no record is like any control is not comparable.
    """
    if isinstance(found, NotEnoughData):
        builder.refuse("blind_auc", found)
        return
    if neighbours is None:
        add_guard(builder, found, withheld=withheld)
        return
    unlike = bool(neighbours.far.all())
    nearest = (
        NOT_LIKE_ANY
        if unlike
        else f"Each record is compared with the {neighbours.audited.shape[1]} controls nearest to it."
    )
    check = GuardCheck(name="content", effect=float(neighbours.far.mean()), comparable=not unlike, text=nearest)
    add_guard(builder, replace(found, guard=Guard(comparable=not unlike, checks=(check,))), withheld=withheld)
    if not found.comparable:
        builder.note(
            "controls_of_another_kind", f"{found.reason} Only the controls nearest to the audited records count."
        )
