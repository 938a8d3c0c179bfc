"""One world: a query set drawn from stored scores, decided about by the audit's own functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scores import Stored

from recollect.audits.removal.audit import RemovalAudit
from recollect.audits.removal.calibrated import SetEvidence, clears_by_members, compute_set_p_values
from recollect.audits.removal.confidence_scores import MEMBERS, CalibrationScores, UnitScores, _average_counted_scores
from recollect.audits.removal.decisions import decide_set
from recollect.audits.removal.difficulty import compare_difficulty
from recollect.audits.removal.member_likelihood import (
    MemberLikelihood,
    compute_member_probabilities,
    fit_member_likelihood,
)
from recollect.audits.removal.mixture import build_mixture, build_unlike_mixture
from recollect.audits.removal.neighbours import Neighbours
from recollect.errors import NotEnoughData
from recollect.results.result import Placebo
from recollect.signals.evidence import AUDITED, CONTROLS
from recollect.signals.lira import compute_logit
from recollect.signals.scores import Scores

AUDIT = RemovalAudit()
NOT_RUN = Placebo(status="not_run", reason="A study of many worlds has its own null.")
NOT_CHECKED = NotEnoughData("Stored scores have no content.", do="", code="too_few_records")
Row = dict[str, Any]
Drawn = list[tuple[str, NDArray[np.int64]]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """What controls and calibration models show."""

    scores: UnitScores
    likelihood: MemberLikelihood
    controls: Scores
    members: Scores


@dataclass(frozen=True, kw_only=True, eq=False)
class Training:
    """The stored scores of one training, as the audit has them."""

    stored: Stored
    images: bool

    def run(
        self, rng: np.random.Generator, *, size: int, share: float, source: str = "fresh", controls: int = 0
    ) -> Row:
        """The decision about one set.

        Args:
            rng: Draws it.
            size: How many records it has.
            share: The share of them that trained the target.
            source: Where the others are drawn from: "fresh" or "far".
            controls: How many controls there are; 0 for all.
        """
        inside = round(share * size)
        parts = [("train", inside), (source, size - inside)]
        drawn = [(name, rng.permutation(len(self.stored[name]))[:count]) for name, count in parts if count]
        everyone = np.arange(len(self.stored["member"]))
        kept = np.sort(rng.permutation(everyone)[:controls]) if controls else everyone
        known = self._build_scores(kept) if controls else self.known
        scores = known.scores
        confidence, difficulties = self._score_audited(drawn, rng)
        audited = _name(known.likelihood.compute_probability(confidence, difficulties), "a")
        sides = audited, known.controls, known.members
        near = self._build_neighbours(drawn) if self.images else None
        unlike = near is not None and bool(near.far.all())
        difficulty = (
            None if near is None or unlike else compare_difficulty(near, difficulties, scores.difficulty[CONTROLS])
        )
        above, below = compute_set_p_values(sides[0], sides[1], near, difficulty, seed=int(rng.integers(2**31)))
        evidence = SetEvidence(
            unit="record",
            scores=scores,
            audited=sides[0],
            controls=sides[1],
            members=sides[2],
            neighbours=near,
            difficulty=difficulty,
            comparability=NOT_CHECKED,
            mixture=None if unlike else build_mixture(AUDIT, sides, near, above),
            unlike=build_unlike_mixture(AUDIT, audited, known.members) if clears_by_members(near, difficulty) else None,
            p_above=above,
            p_below=below,
            explained=False,
            placebo=NOT_RUN,
            level=AUDIT.level,
        )
        return {"decision": decide_set(evidence), **_describe_share(evidence, inside / size)}

    @cached_property
    def known(self) -> Known:
        """All controls."""
        return self._build_scores(np.arange(len(self.stored["member"])))

    def _score_audited(self, drawn: Drawn, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The target's confidence in the records drawn, and how hard they are for calibration models."""
        audited = compute_logit(np.concatenate([self.stored[name][rows] for name, rows in drawn]))
        models = audited.shape[1] - 1
        coins = np.repeat(rng.integers(0, 2, (len(audited), models // 2)), 2, axis=1) == np.arange(models) % 2
        return audited[:, 0], _average_counted_scores(audited[:, 1:], coins)

    def _build_scores(self, kept: NDArray[np.int64]) -> Known:
        """What some of the controls show."""
        controls, member = compute_logit(self.stored["controls"][kept]), self.stored["member"][kept]
        models = member.shape[1]
        difficulty = _average_counted_scores(controls[:, 1:], ~member)
        names = np.array([f"c{i:05d}" for i in kept])
        inside, outside = (_collect(controls[:, 1:], chosen, names) for chosen in (member, ~member))
        others = [
            _average_counted_scores(controls[:, 1:], ~member & (np.arange(models) // 2 != i // 2))
            for i in range(models)
        ]
        unseen = Scores(tuple(names), tuple(names), controls[:, 0])
        calibration = CalibrationScores(
            confidence=controls[:, 1:].ravel(), difficulty=np.stack(others, axis=1).ravel(), member=member.ravel()
        )
        scores = UnitScores(
            audited=unseen,
            controls=unseen,
            members=inside,
            non_members=outside,
            difficulty={
                AUDITED: difficulty,
                CONTROLS: difficulty,
                MEMBERS: np.concatenate([difficulty[flags] for flags in member.T]),
            },
            calibration=calibration,
            dropped={},
        )
        _, theirs, trained = compute_member_probabilities(scores, saturates=self.images)
        likelihood = fit_member_likelihood(calibration, saturates=self.images)
        return Known(scores=scores, likelihood=likelihood, controls=theirs, members=trained)

    def _build_neighbours(self, drawn: Drawn) -> Neighbours:
        """The nearest controls of the records drawn."""
        nearest, distance = (
            np.concatenate([self.stored[f"{name}_{what}"][rows] for name, rows in drawn])
            for what in ("nearest", "distance")
        )
        usual = self.stored["controls_distance"]
        return Neighbours(audited=nearest, controls=self.stored["controls_nearest"], distances=(distance, usual))


def _describe_share(evidence: SetEvidence, truth: float) -> Row:
    """The share still in, and whether its interval covers the truth; None if there is none."""
    if evidence.mixture is None or not evidence.mixture.identifiable:
        return {"share": None, "covered": None}
    found = evidence.mixture.estimate_share(AUDIT.confidence)
    return {"share": found.value, "covered": found.interval is not None and truth in found.interval}


def _name(values: NDArray[np.float64], prefix: str) -> Scores:
    """Scores under made-up names."""
    names = tuple(f"{prefix}{i:05d}" for i in range(len(values)))
    return Scores(names, names, values)


def _collect(values: NDArray[np.float64], chosen: NDArray[np.bool_], names: NDArray[np.str_]) -> Scores:
    """The scores of some controls under each calibration model."""
    pieces = []
    for model, flags in enumerate(chosen.T):
        own = tuple(names[flags].tolist())
        pieces.append(Scores(tuple(f"shadow-{model}/{name}" for name in own), own, values[flags, model]))
    return Scores.concatenate(pieces)
