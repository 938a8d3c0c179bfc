"""The method `calibrated`: a set beside controls, which it should be like if removed, and members, if still in.

Every audited record and every control has a member probability (`member_likelihood`). Under the hypothesis that nothing
is in, those of the audited and of comparable controls have the same mean; and that is what is tested. Nothing is chosen
on the scores that are tested. Single people get conformal p-values against controls and against members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from recollect import labels
from recollect.audits.common.guard import Comparability, explains_scores
from recollect.audits.removal.confidence_scores import Flags, UnitScores, choose_scored_unit, score_confidence
from recollect.audits.removal.difficulty import DifficultyShift, compare_difficulty
from recollect.audits.removal.member_likelihood import compute_member_probabilities
from recollect.audits.removal.mixture import STILL_THERE_SHARE, Mixture, build_mixture, build_unlike_mixture
from recollect.audits.removal.mixture_means import MixtureMean, compare_mixture_means, correct_by_ratio
from recollect.audits.removal.neighbours import Neighbours, choose_neighbours
from recollect.audits.removal.safeguards import check_sides, find_like_controls, play_placebo
from recollect.corpora.cohorts import Unit
from recollect.errors import NotEnoughData, PlanError
from recollect.results.result import Placebo
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, SHADOW, TARGET, Evidence
from recollect.signals.scores import Scores
from recollect.stats.groups import Floats
from recollect.stats.requirements import require_count, required_controls
from recollect.stats.significance import Alternative, conformal_p
from recollect.stats.two_sample_tests import permutation
from recollect.streams import stream

if TYPE_CHECKING:
    from recollect.audits.removal.audit import RemovalAudit


CODES: Final = {AUDITED: "records", CONTROLS: "controls"}
MOST: Final = 0.5
"""Where more than this share of the audited records is unlike any control, controls do not stand for the set."""
DRAWS: Final = 1999
"""Permutations of the audited and the controls."""
SIDES: Final[tuple[Alternative, ...]] = ("greater", "less")


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
    difficulty: DifficultyShift | None
    """How hard the audited records are beside their neighbours; None without these, and if no record is like any."""
    comparability: Comparability | NotEnoughData
    """How the set compares with the controls in all that can be seen without the model, or why that is not known."""
    mixture: Mixture | None
    """None without calibration models, and if no audited record is like any control."""
    unlike: Mixture | None
    """Where most audited records are unlike any control, or they are harder than these: the mixture with nothing known
    of non-members, which rules out shares still in whatever the set is like; else None."""
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
    def share_mixture(self) -> Mixture | None:
        """The mixture by which the share still in is estimated; None if it cannot be."""
        differs = self.difficulty is not None and self.difficulty.differs
        return None if self.target_damaged or differs else self.mixture

    @property
    def gone_mixture(self) -> Mixture | None:
        """The mixture by which the set may be called gone."""
        return self.mixture if self.unlike is None else self.unlike

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
    """All that a decision about the audited set by the method `calibrated` rests on.

    Raises:
        NotEnoughData: There are too few records to compare.
    """
    calibrated, unit = bool(evidence.models_of_role(SHADOW)), choose_scored_unit(evidence)
    if not calibrated and not evidence.models_of_role(REFERENCE):
        raise NotEnoughData(
            f"The calibration set has {len(evidence.corpora[CONTROLS])} records, too few to be halved.",
            do="Give more controls.",
            code="too_few_controls",
        )
    scores = score_confidence(evidence, unit=unit)
    for role, found in ((AUDITED, scores.audited), (CONTROLS, scores.controls)):
        named = f"{role} {unit}s" if role == AUDITED else f"{unit}s among the controls"
        require_count(len(found), 2, of=named, purpose="The test of a set", code=f"too_few_{CODES[role]}")
    saturates = evidence.models[TARGET].kind == "classifier"
    sides = audited, controls, members = compute_member_probabilities(scores, saturates=saturates)
    neighbours = choose_neighbours(audit, evidence, scores, unit)
    comparability = check_sides(evidence, scores, unit, period=audit.period, sampled=neighbours is not None)
    unlike = neighbours is not None and bool(neighbours.far.all())
    difficulty = (
        None
        if neighbours is None or unlike
        else compare_difficulty(neighbours, scores.difficulty[AUDITED], scores.difficulty[CONTROLS])
    )
    above, below = compute_set_p_values(audited, controls, neighbours, difficulty, seed=evidence.seed)
    explained = (
        neighbours is None
        and not isinstance(comparability, NotEnoughData)
        and explains_scores(comparability, audited, controls)
    )
    return SetEvidence(
        unit=unit,
        scores=scores,
        audited=audited,
        controls=controls,
        members=members,
        neighbours=neighbours,
        difficulty=difficulty,
        comparability=comparability,
        mixture=build_mixture(audit, sides, neighbours, above) if calibrated and not unlike else None,
        unlike=build_unlike_mixture(audit, audited, members)
        if calibrated and clears_by_members(neighbours, difficulty)
        else None,
        p_above=above,
        p_below=below,
        explained=explained,
        placebo=play_placebo(controls, neighbours, size=len(audited), seed=evidence.seed, alpha=audit.level),
        level=audit.level,
    )


def clears_by_members(neighbours: Neighbours | None, difficulty: DifficultyShift | None) -> bool:
    """Whether a set may be called gone by what members score alone, because controls cannot stand for it.

    By content and difficulty, independently of the target: so no choice between two tests is made by their outcome.
    """
    mostly_unlike = neighbours is not None and float(neighbours.far.mean()) > MOST
    return mostly_unlike or (difficulty is not None and difficulty.harder)


def compute_set_p_values(
    audited: Scores,
    controls: Scores,
    neighbours: Neighbours | None,
    difficulty: DifficultyShift | None = None,
    *,
    seed: int,
) -> tuple[float, float]:
    """The p-values of the method `calibrated`: of "the set scores higher than the controls" and of "lower".

    Where all controls represent the set alike, a permutation test of the means; with neighbours, t-tests of the mean of
    the audited against that of their nearest controls. These are easier than the records themselves. Where distances
    and difficulty are those of controls among each other, both corrections for that must agree; else nothing is
    corrected in favour of "higher", and nothing is called lower.

    Args:
        audited: The audited.
        controls: The controls.
        neighbours: The controls that represent each audited record; None if all do alike.
        difficulty: How hard the audited records are beside those; None without neighbours, or if none is like them.
        seed: Of the permutations.
    """
    if neighbours is None:
        sides = audited.values, controls.values
        found = [
            permutation(*sides, rng=stream(seed, *labels.STREAM_REMOVAL_PERMUTATION), alternative=side, draws=DRAWS).p
            for side in SIDES
        ]
        return found[0], found[1]
    if difficulty is None:
        return 1.0, 1.0
    ours = MixtureMean.of(audited.values[~neighbours.far])
    nearest, difference = (
        MixtureMean.of(controls.values, weights)
        for weights in (neighbours.nearest_weights, neighbours.corrected_weights)
    )
    ratio = correct_by_ratio(controls.values, neighbours)
    corrected = [difference] if ratio is None else [difference, ratio]
    shifted = neighbours.shifted or difficulty.easier
    compared = [nearest] if shifted else corrected
    above = max(compare_mixture_means(ours.with_variance_of(each), each) for each in compared)
    # neither side's variance may be small because few of its records happen to be doubted
    below = compare_mixture_means(difference.with_variance_of(ours), ours.with_variance_of(difference))
    # among few controls of a label the nearest are not like the record, but nearly all there are
    unlike = difficulty.easier_than_nearest or (neighbours.few and (shifted or difficulty.perhaps_easier))
    return 1.0 if unlike else above, 1.0 if neighbours.shifted or difficulty.harder else below


@dataclass(frozen=True, kw_only=True, eq=False)
class UserEvidence:
    """All that decisions about people rest on."""

    scores: UnitScores
    p_values: Mapping[str, Floats]
    """By the hypothesis that each supports: "p_still_there", "p_gone", "p_over_unlearned"; one per person."""
    audited: Scores
    """By how much the target is more confident in each person than models that were not trained on them."""
    controls: Scores
    """The same of the control users."""
    comparability: Comparability | NotEnoughData
    """How the people compare with the controls in all that can be seen without the model, or why it is not known."""
    atypical: Flags
    """Who has amounts that hardly any control has, and is not decided about [people]."""
    level: float
    """The significance level."""

    @property
    def comparable(self) -> bool:
        """Whether nothing that can be seen without the model tells the people and the controls apart."""
        return self.difference is None

    @property
    def difference(self) -> str | None:
        """In which respects people and controls differ, and what controls would do; None if they are comparable."""
        found = self.comparability
        return None if isinstance(found, NotEnoughData) or found.comparable else found.reason

    @property
    def needed_controls(self) -> int:
        """How many control users are needed to identify anyone individually after correction."""
        return required_controls(self.level * STILL_THERE_SHARE, tests=len(self.scores.audited))


def compare_users(audit: RemovalAudit, evidence: Evidence) -> UserEvidence:
    """All that decisions about the audited people by the method `calibrated` rest on.

    Raises:
        NotEnoughData: There are too few calibration models or control users.
        PlanError: Some records have no user.
    """
    if any(record.user is None for role in (AUDITED, CONTROLS) for record in evidence.corpora[role]):
        raise PlanError(
            "Users are to be decided about, and some records have none.",
            do="Name the user column.",
            code="records_without_user",
        )
    shadows, purpose = len(evidence.models_of_role(SHADOW)), "A decision about a person"
    require_count(shadows, 2, of="calibration models", purpose=purpose, code="too_few_shadows")
    scores = score_confidence(evidence, unit="user")
    needed = required_controls(audit.level * STILL_THERE_SHARE)
    require_count(len(scores.controls), needed, of="control users", purpose=purpose, code="too_few_controls")
    people, controls, members = scores.subtract_difficulty()
    like = find_like_controls(evidence, scores)
    atypical = like.sum(axis=1) < needed
    found = _compute_user_p_values(people, controls, members, like)
    return UserEvidence(
        scores=scores,
        p_values={name: np.where(atypical, 1.0, np.minimum(1, p)) for name, p in found.items()},
        audited=people,
        controls=controls,
        comparability=check_sides(evidence, scores, "user", period=audit.period),
        atypical=atypical,
        level=audit.level,
    )


def _compute_user_p_values(people: Scores, controls: Scores, members: Scores, like: Flags) -> dict[str, Floats]:
    """The p-values of the method `calibrated` about each person, against the controls that they are like.

    Args:
        people: By how much the target is more confident in each than models that were not trained on them.
        controls: The same of the control users.
        members: The same of calibration models, in the controls that trained them.
        like: With which controls each person is compared [people, controls].
    """
    found = {name: np.ones(len(people)) for name in ("p_still_there", "p_gone", "p_over_unlearned")}
    names = np.array(controls.records)
    for row in np.unique(like, axis=0):
        alike = np.flatnonzero((like == row).all(axis=1))
        if not row.any():
            continue
        own, theirs = people.values[alike], controls.select(names[row].tolist())
        # the same control under several models counts once: it owns all its scores
        trained = members.select_users(theirs.records)
        found["p_still_there"][alike] = conformal_p(own, theirs) / STILL_THERE_SHARE
        found["p_gone"][alike] = conformal_p(-own, trained.with_values(-trained.values))
        found["p_over_unlearned"][alike] = conformal_p(-own, theirs.with_values(-theirs.values)) / (
            1 - STILL_THERE_SHARE
        )
    return found
