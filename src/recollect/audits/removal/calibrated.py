"""The method `calibrated`: a set beside controls, which it should be like if removed, and members, if still in.

Every audited record and every control has a member probability (`likelihood`). Under the hypothesis that nothing is in,
those of the audited and of comparable controls have the same mean; and that is what is tested. Nothing is chosen on the
scores that are tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from recollect import labels
from recollect.audits.common.guard import Comparability, check_comparable, explains_scores
from recollect.audits.removal.likelihood import fit_likelihood
from recollect.audits.removal.mixture import Mean, Mixture, compare_means
from recollect.audits.removal.neighbours import Neighbours, find_neighbours
from recollect.audits.removal.placebo import play_placebo
from recollect.audits.removal.scores import MEMBERS, UnitScores, choose_unit, score_units
from recollect.corpora.cohorts import Unit
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.digests import digest
from recollect.errors import NotEnoughData
from recollect.results.result import Placebo
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, SHADOW, TARGET, Evidence
from recollect.signals.scores import Scores
from recollect.stats.comparisons import permutation
from recollect.stats.groups import Floats
from recollect.stats.significance import Alternative
from recollect.streams import stream

if TYPE_CHECKING:
    from recollect.audits.removal.audit import RemovalAudit

NEAREST: Final = 3
"""So many controls represent an audited record: with more, controls of another kind are among them; with fewer, chance
hides what is in (`studies/removal`)."""
STILL_THERE_SHARE: Final = 0.8
"""Of α, for "still there"; the rest is for "over-unlearned", the other way to accuse a set that is gone."""
DRAWS: Final = 1999
"""Permutations of the audited and the controls."""
SIDES: Final[tuple[Alternative, ...]] = ("greater", "less")
MAX_BLIND: Final = 200
"""Records of either side by which it is told, where each has neighbours, how well content separates the two."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SetEvidence:
    """All that a decision about a set rests on."""

    unit: Unit
    scores: UnitScores
    audited: Scores
    """Member probabilities under the target; without calibration models, by how much it is more confident than the
    references are."""
    controls: Scores
    """The same of the controls."""
    members: Scores
    """Member probabilities of calibration models in the controls that trained them."""
    neighbours: Neighbours | None
    """The controls that represent each audited record; None if all represent it alike."""
    comparability: Comparability | NotEnoughData
    """How the set compares with the controls in all that can be seen without the model, or why that is not known."""
    mixture: Mixture | None
    """None without calibration models, and if no audited record is like any control."""
    unlike: Mixture | None
    """Where no audited record is like any control: the mixture with nothing known of non-members, which rules out
    shares still in whatever the set is like; else None."""
    p_above: float
    """How often a set of which nothing was ever in would look so well known."""
    p_below: float
    """How often one would look so unknown."""
    explained: bool
    """Whether a classifier that never saw the model separates the two sides as well."""
    placebo: Placebo
    level: float
    """The significance level."""

    @property
    def p_still_there(self) -> float:
        """The p-value of "still there", corrected for the other direction, which is tested too."""
        return min(1.0, self.p_above / STILL_THERE_SHARE)

    @property
    def p_over_unlearned(self) -> float:
        """The p-value of "over-unlearned", corrected likewise."""
        return min(1.0, self.p_below / (1 - STILL_THERE_SHARE))

    @property
    def comparable(self) -> bool:
        """Whether the set may be compared with controls: by its neighbours, or because nothing tells the two apart."""
        if self.neighbours is not None:
            return not self.neighbours.far.all()
        return isinstance(self.comparability, NotEnoughData) or self.comparability.comparable

    @cached_property
    def target_damaged(self) -> bool:
        """Whether the target was damaged as a whole, as far as controls like the audited records show."""
        near = self.neighbours
        return self.scores.is_target_damaged(None if near is None or near.far.all() else near.nearest_weights > 0)


def compare_set(audit: RemovalAudit, evidence: Evidence) -> SetEvidence:
    """All that a decision about the audited set rests on.

    Raises:
        NotEnoughData: There are too few records to compare.
    """
    calibrated, unit = bool(evidence.models_of_role(SHADOW)), choose_unit(evidence)
    if not calibrated and not evidence.models_of_role(REFERENCE):
        raise NotEnoughData(
            f"The calibration set has {len(evidence.corpora[CONTROLS])} records, too few to be halved.",
            do="Give more controls.",
            code="too_few_controls",
        )
    scores = score_units(evidence, unit=unit)
    saturates = evidence.models[TARGET].kind == "classifier"
    sides = audited, controls, members = compute_probabilities(scores, saturates=saturates)
    neighbours = _choose_neighbours(audit, evidence, scores, unit)
    comparability = compare_sides(evidence, scores, unit, sampled=neighbours is not None)
    above, below = compare_scores(audited, controls, neighbours, seed=evidence.seed)
    explained = (
        neighbours is None
        and not isinstance(comparability, NotEnoughData)
        and explains_scores(comparability, audited, controls)
    )
    unlike = neighbours is not None and bool(neighbours.far.all())
    return SetEvidence(
        unit=unit,
        scores=scores,
        audited=audited,
        controls=controls,
        members=members,
        neighbours=neighbours,
        comparability=comparability,
        mixture=build_mixture(audit, sides, neighbours, above) if calibrated and not unlike else None,
        unlike=_build_unlike(audit, audited, members) if calibrated and unlike else None,
        p_above=above,
        p_below=below,
        explained=explained,
        placebo=play_placebo(controls, neighbours, size=len(audited), seed=evidence.seed, alpha=audit.level),
        level=audit.level,
    )


def compute_probabilities(scores: UnitScores, *, saturates: bool) -> tuple[Scores, Scores, Scores]:
    """The member probabilities of the audited, the controls and the members of calibration models.

    Without calibration models, by how much the target is more confident than the references.

    Args:
        scores: The confidence scores.
        saturates: Whether they are of a classifier, which is certain of most records.
    """
    if scores.calibration is None:
        return scores.subtract_difficulty()
    sides = ((AUDITED, scores.audited), (CONTROLS, scores.controls), (MEMBERS, scores.members))
    likelihood = fit_likelihood(scores.calibration, saturates=saturates)
    one, other, inside = (
        side.with_values(likelihood.compute_probability(side.values, scores.difficulty[name])) for name, side in sides
    )
    return one, other, inside


def compare_scores(
    audited: Scores, controls: Scores, neighbours: Neighbours | None, *, seed: int
) -> tuple[float, float]:
    """The p-values of "higher than the controls" and of "lower".

    Where all controls represent the set alike, a permutation test of the means; with neighbours, a t-test of the mean
    of the audited against the mean of their nearest controls. Where distances show that the controls are of another
    kind, nothing is called lower than they are.

    Args:
        audited: The audited.
        controls: The controls.
        neighbours: The controls that represent each audited record; None if all do alike.
        seed: Of the permutations.
    """
    if neighbours is None:
        sides = audited.values, controls.values
        found = [
            permutation(*sides, rng=stream(seed, *labels.STREAM_REMOVAL_PERMUTATION), alternative=side, draws=DRAWS).p
            for side in SIDES
        ]
        return found[0], found[1]
    if neighbours.far.all():
        return 1.0, 1.0
    ours = Mean.of(audited.values[~neighbours.far])
    nearest, corrected = (
        Mean.of(controls.values, weights) for weights in (neighbours.nearest_weights, neighbours.corrected_weights)
    )
    # nearest controls are easier: uncorrected, nothing is accused for that; corrected, nothing is cleared for it
    below = 1.0 if neighbours.shifted else compare_means(corrected, ours)
    return compare_means(ours, nearest), below


def sample_records(corpus: Corpus, wanted: frozenset[str] | None = None) -> list[Record]:
    """The records of a corpus in an order that is random and does not depend on theirs: by the digest of their id.

    Args:
        corpus: The corpus.
        wanted: The ids to choose from; None for all.
    """
    kept = [record for record in corpus if wanted is None or record.id in wanted]
    return sorted(kept, key=lambda record: digest(labels.DIGEST_SHIFT, record.id))


def compare_sides(
    evidence: Evidence, scores: UnitScores, unit: Unit, *, sampled: bool = False
) -> Comparability | NotEnoughData:
    """How the audited compare with the controls in all that can be seen without the model, or why it is not known."""
    sides = []
    for role, scored in ((AUDITED, scores.audited), (CONTROLS, scores.controls)):
        kept, corpus = set(scored.records), evidence.corpora[role]
        chosen = frozenset(r.id for r in corpus if (r.owner if unit == "user" else r.id) in kept)
        sides.append(sample_records(corpus, chosen)[:MAX_BLIND] if sampled else [r for r in corpus if r.id in chosen])
    try:
        return check_comparable(*sides, by=unit, seed=evidence.seed)
    except NotEnoughData as refusal:
        return refusal


def build_mixture(
    audit: RemovalAudit, sides: tuple[Scores, Scores, Scores], neighbours: Neighbours | None, above: float
) -> Mixture:
    """The audited that are like some control, beside members and non-members that represent them.

    Args:
        audit: Its level and tolerance.
        sides: Member probabilities of the audited, the controls and the members of calibration models.
        neighbours: The controls that represent each audited record; None if all do alike.
        above: The p-value of "still there".
    """
    audited, controls, members = sides
    weights = None if neighbours is None else neighbours.nearest_weights
    named = None if weights is None else dict(zip(controls.records, weights.tolist(), strict=True))
    compared = audited.values if neighbours is None else audited.values[~neighbours.far]
    return Mixture(
        audited=Mean.of(compared),
        unseen=Mean.of(controls.values, None if neighbours is None else neighbours.corrected_weights),
        unseen_nearest=None if weights is None else Mean.of(controls.values, weights),
        members=average_members(members, named),
        p_above=above,
        alpha=audit.level,
        tolerance=audit.tolerance,
    )


def average_members(members: Scores, weights: Mapping[str, float] | None) -> Mean:
    """The mean of members, weighted as the controls are; a unit counts once, however many models it trained.

    Args:
        members: Scores of members of calibration models; a unit's name carries the model's.
        weights: The weight of each control, by name; None for equal ones.
    """
    if weights is None or not any(weights[name] for name in members.users):
        weights = dict.fromkeys(members.users, 1.0)
    shares = np.array([weights[name] for name in members.users])
    model = np.array([name.split("/", 1)[0] for name in members.records])
    each = [_average(members.values, shares * (model == name)) for name in np.unique(model)]
    trained: dict[str, list[float]] = {}
    for name, value in zip(members.users, members.values.tolist(), strict=True):
        trained.setdefault(name, []).append(value)
    own = np.array([weights[name] for name in trained])
    means = np.array([np.mean(values) for values in trained.values()])
    return Mean.of(means, own / own.sum(), models=tuple(value for value in each if value is not None))


def _average(values: Floats, weights: Floats) -> float | None:
    """A weighted mean; None if nothing has weight."""
    total = float(weights.sum())
    return float(weights @ values) / total if total > 0 else None


def _build_unlike(audit: RemovalAudit, audited: Scores, members: Scores) -> Mixture:
    """All audited records, with nothing known of non-members: they may all have probability 0."""
    return Mixture(
        audited=Mean.of(audited.values),
        unseen=Mean(value=0.0, variance=0.0, size=np.inf),
        members=average_members(members, None),
        p_above=1.0,
        alpha=audit.level,
        tolerance=audit.tolerance,
    )


def _choose_neighbours(audit: RemovalAudit, evidence: Evidence, scores: UnitScores, unit: Unit) -> Neighbours | None:
    """The controls that represent each audited record; None if all represent it alike."""
    count = NEAREST if audit.neighbours is None else audit.neighbours
    labelled = all(record.kind == "labelled" for record in evidence.corpora[AUDITED])
    if not count or unit != "record" or (audit.neighbours is None and not labelled):
        return None
    sides = []
    for role, scored in ((AUDITED, scores.audited), (CONTROLS, scores.controls)):
        by_id = {record.id: record for record in evidence.corpora[role]}
        sides.append([by_id[name] for name in scored.records])
    return find_neighbours(sides[0], sides[1], count)
