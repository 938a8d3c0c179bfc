"""Whether what the tests decide may be told: are both sides comparable, do the texts explain it, could it be found?"""

from __future__ import annotations

from dataclasses import dataclass

from recollect.audits.common.guard import Comparability, check_comparable, check_matched, explains_scores
from recollect.audits.common.guard_wording import AUDITED_AND_CONTROLS, Sides
from recollect.audits.common.outcomes import Conclusion, conclude
from recollect.audits.common.power import (
    count_needed_controls,
    minimum_detectable_auc,
    smallest_conformal_p,
    smallest_rank_p,
)
from recollect.audits.membership.comparison import GroupTest, Side
from recollect.audits.membership.inference import Inference
from recollect.audits.membership.placebo import play_controls
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData
from recollect.results.result import Placebo, Power
from recollect.signals.scores import Scores
from recollect.stats.requirements import required_controls


@dataclass(frozen=True, kw_only=True, eq=False)
class Validity:
    """What may be told."""

    guard: Comparability | NotEnoughData
    """How the two sides compare that decide the outcome, without the model; or why that is not known."""
    naming: Comparability | NotEnoughData | None
    """How candidates and controls compare, where members and non-members decide the outcome; else None."""
    conclusion: Conclusion
    placebo: Placebo
    power: Power

    @property
    def naming_is_valid(self) -> bool:
        """Whether p-values of single candidates mean anything."""
        checked = self.guard if self.naming is None else self.naming
        return self.conclusion.outcome != "inconclusive" and not _differ(checked)


def check_validity(found: Inference) -> Validity:
    """Guard, blind baseline and power of an inference."""
    outcome, _ = found.decided
    by_truth = found.by_truth
    sides = _list_sides(found, by_truth=by_truth)
    guard = _guard(found, *sides, ("members", "non-members") if by_truth else AUDITED_AND_CONTROLS)
    naming = None
    if by_truth and found.control_side is not None:
        naming = _guard(found, found.candidate_side, found.control_side)
    explained = (
        outcome == "found" and isinstance(guard, Comparability) and explains_scores(guard, *_score_sides(found, *sides))
    )
    power = measure_power(found)
    placebo = play_controls(
        found.comparer, *sides, single=found.audit.by == "user" and not by_truth, alpha=found.audit.alpha
    )
    conclusion = conclude(
        outcome,
        code="too_few_records" if outcome == "inconclusive" else None,
        guard=guard.guard if isinstance(guard, Comparability) else None,
        placebo=placebo,
        explained=explained,
        attainable=power.smallest_p is None or power.smallest_p <= found.audit.alpha,
    )
    return Validity(guard=guard, naming=naming, conclusion=conclusion, placebo=placebo, power=power)


def measure_power(found: Inference) -> Power:
    """The smallest p-value that any scores could have given, the smallest AUC that would be found, what is needed."""
    alpha, smallest, detectable = found.audit.alpha, list[float](), list[float | None]()
    needed = dict[str, int]()
    if isinstance(found.membership, GroupTest):
        smallest.append(smallest_rank_p(found.membership.above, found.membership.below))
        detectable.append(minimum_detectable_auc(found.membership.above, found.membership.below, alpha=alpha))
    if not (found.scores.complete and smallest) and found.units is not None and found.decisions is not None:
        smallest.append(_find_smallest(found))
        ours, theirs = len(set(found.scores.candidates.users)), int(found.units.controls.max(initial=0))
        detectable.append(minimum_detectable_auc(ours, theirs, alpha=alpha))
    if found.units is not None:
        wanted = required_controls(alpha, tests=max(1, len(found.scores.candidates)))
        wanted = 2 * wanted + 1 if int(found.units.draws.max(initial=1)) > 1 else wanted
        if int(found.units.controls.min(initial=0)) < wanted:
            needed["control_users_to_identify_one"] = wanted
    if not smallest:
        return Power(needed=needed)
    if min(1.0, len(smallest) * min(smallest)) > alpha and found.decisions is not None:
        holm = len(found.decisions.p) if found.decisions.correction == "holm" else 1
        needed["control_users"] = count_needed_controls(
            len(set(found.scores.candidates.users)), alpha=alpha / (2 * len(smallest)), tests=holm
        )
    found_auc = [each for each in detectable if each is not None]
    return Power(
        smallest_p=min(1.0, len(smallest) * min(smallest)),
        minimum_detectable_effect=min(found_auc) if found_auc else None,
        effect_unit="AUC of users against controls, found in 80 % of runs" if found_auc else None,
        needed=needed,
    )


def _find_smallest(found: Inference) -> float:
    """The smallest p-value of "no candidate is a member" that controls could have given."""
    units, decisions = found.units, found.decisions
    assert units is not None  # noqa: S101 - asked for only then
    assert decisions is not None  # noqa: S101
    tests = len(decisions.p) if decisions.correction == "holm" else 1
    single = min(
        (
            smallest_conformal_p(int(controls), tests=tests, draws=int(draws))
            for controls, draws in {*zip(units.controls.tolist(), units.draws.tolist(), strict=True)}
        ),
        default=1.0,
    )
    group = found.training
    if not isinstance(group, GroupTest):
        return single
    rank = smallest_rank_p(group.above, group.below)
    if group.equal:
        return rank  # all candidates above all controls: no other labels give as small a p-value
    return min(1.0, 2 * min(single, 2 * rank))


def _differ(checked: Comparability | NotEnoughData) -> bool:
    """Whether two sides are known not to be comparable."""
    return isinstance(checked, Comparability) and not checked.comparable


def _list_sides(found: Inference, *, by_truth: bool) -> tuple[Side, Side]:
    """The two sides that decide the outcome."""
    if not by_truth and found.control_side is not None:
        return found.candidate_side, found.control_side
    truth = found.records.truth or {}
    one, other = (
        Side(
            role=found.candidate_side.role,
            scores=found.records.candidates.select(
                [r for r in found.records.candidates.records if truth.get(r) is member]
            ),
        )
        for member in (True, False)
    )
    return one, other


def _guard(
    found: Inference, above: Side, below: Side, names: Sides = AUDITED_AND_CONTROLS
) -> Comparability | NotEnoughData:
    """How two sides compare without the model, at the amounts at which they are compared."""
    one, other = (_list_records(found, side) for side in (above, below))
    shared = set(above.scores.users) & set(below.scores.users)
    seed, period = found.evidence.seed, found.audit.period
    try:
        if not shared and one and other:
            matching = found.comparer.match_users(above, below)
            if not matching.equal:
                return check_matched(matching, one, other, seed=seed, period=period, sides=names)
        return check_comparable(one, other, by=found.audit.by, seed=seed, period=period, sides=names)
    except NotEnoughData as refusal:
        return refusal


def _list_records(found: Inference, side: Side) -> list[Record]:
    """The records of one side."""
    return [record for record in found.evidence.corpora[side.role] if record.id in side.scores]


def _score_sides(found: Inference, above: Side, below: Side) -> tuple[Scores, Scores]:
    """One score per user of both sides, at the amounts at which they are compared."""
    if set(above.scores.users) & set(below.scores.users):
        return above.scores, below.scores
    matching = found.comparer.match_users(above, below)
    if matching.equal:
        return above.scores.average_by_user(), below.scores.average_by_user()
    return found.comparer.score_strata(matching, above, below)
