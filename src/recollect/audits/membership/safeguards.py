"""The safeguards of membership: the guard (are both sides comparable), the power of the design, and a placebo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from recollect import labels
from recollect.audits.common.amounts import Bools, Ints
from recollect.audits.common.guard import Comparability, add_guard, check_comparable, check_matched, explains_scores
from recollect.audits.common.guard_wording import AUDITED_AND_CONTROLS, MEMBERS_AND_NON_MEMBERS, Sides
from recollect.audits.common.outcomes import (
    EXPLAINED_BY_TEXTS,
    NO_POWER,
    NOT_COMPARABLE,
    PLACEBO_FAILED,
    Conclusion,
    conclude,
)
from recollect.audits.common.placebo import run_placebos
from recollect.audits.common.power import count_needed_controls, minimum_detectable_auc, smallest_conformal_p
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.common.score_table import ScoreTable, accuse
from recollect.audits.membership.comparison import Comparer, GroupTest, Side
from recollect.audits.membership.decisions import COARSE
from recollect.audits.membership.inference import Inference
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData
from recollect.results.result import Placebo, Power
from recollect.signals.scores import Scores
from recollect.stats.requirements import required_controls
from recollect.streams import stream

_SPOILT: Final = {
    EXPLAINED_BY_TEXTS: "A classifier that never saw the model separates the two sides as well as the scores do: what "
    "was found may be a difference of the texts.",
    PLACEBO_FAILED: "The same audit accuses controls in the place of the candidates, who cannot be members.",
}
_PLACEBO_FAILED_BY_TRUTH: Final = "The same audit accuses non-members in the place of the members."
_NOBODY_COULD_BE_IDENTIFIED: Final = (
    "No scores could have been significant in this design, so that nobody could be identified: that nobody is says "
    "nothing. The verdict says what would be enough."
)
_NAMING_CHECKED: Final = (
    "Members and non-members decide the outcome. Candidates are identified by the controls, with which they were "
    "compared as well: no check distinguishes the two."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Validity:
    """What may be told."""

    guard: Comparability | NotEnoughData
    """How the two sides compare that decide the outcome, without the model; or why that is not known."""
    naming: Comparability | NotEnoughData | None
    """How candidates and controls compare, where members and non-members decide the outcome; else None."""
    members: Comparability | NotEnoughData | None
    """How members and non-members compare, where candidates and controls are compared, too; else None."""
    membership_p: float | None
    """The p-value of members against non-members as far as it counts; None where it does not."""
    p: float | None
    """The p-value that decides the outcome; None where nothing can be decided."""
    conclusion: Conclusion
    placebo: Placebo
    power: Power

    @property
    def naming_is_valid(self) -> bool:
        """Safeguard of membership: whether p-values of single candidates mean anything."""
        checked = self.guard if self.naming is None else self.naming
        return self.conclusion.outcome != "inconclusive" and not _do_safeguards_fail(checked)


def check_validity(found: Inference) -> Validity:
    """All safeguards of a membership audit: guard, blind baseline, power and placebo."""
    by_truth = found.by_truth
    sides = _list_guarded_sides(found, by_truth=by_truth)
    names = MEMBERS_AND_NON_MEMBERS if by_truth else AUDITED_AND_CONTROLS
    guard = _check_sides(found, *sides, names)
    naming = None
    if by_truth and found.control_side is not None:
        naming = _check_sides(found, found.candidate_side, found.control_side)
    members, membership_p = (None, found.membership_p) if by_truth else _check_members(found)
    outcome, p = found.decide(membership_p)
    explained = outcome == "found" and _explains_found(found, guard, sides)
    power = state_power(found, with_members=membership_p is not None)
    single = found.audit.by == "user" and not by_truth
    placebo = play_placebo(found.comparer, *sides, single=single, alpha=found.audit.alpha, names=names)
    conclusion = conclude(
        outcome,
        code="too_few_records" if outcome == "inconclusive" else None,
        guard=guard.guard if isinstance(guard, Comparability) else None,
        placebo=placebo,
        explained=explained,
        attainable=power.smallest_p is None or power.smallest_p <= found.audit.alpha,
    )
    return Validity(
        guard=guard,
        naming=naming,
        members=members,
        membership_p=membership_p,
        p=p,
        conclusion=conclusion,
        placebo=placebo,
        power=power,
    )


def _check_members(found: Inference) -> tuple[Comparability | NotEnoughData | None, float | None]:
    """Safeguard of membership: how members and non-members compare who are tested besides candidates and controls.

    And their p-value as far as it counts: None if they are not comparable, 1 if their texts explain it.
    """
    p = found.membership_p
    if p is None:
        return None, None
    sides = _list_guarded_sides(found, by_truth=True)
    checked = _check_sides(found, *sides, MEMBERS_AND_NON_MEMBERS)
    if _do_safeguards_fail(checked):
        return checked, None
    return checked, 1.0 if p <= found.audit.alpha and _explains_found(found, checked, sides) else p


def _explains_found(found: Inference, checked: Comparability | NotEnoughData, sides: tuple[Side, Side]) -> bool:
    """Safeguard of membership: whether the texts of two sides alone explain that their scores differ."""
    return isinstance(checked, Comparability) and explains_scores(checked, *_score_guarded_sides(found, *sides))


def state_power(found: Inference, *, with_members: bool = True) -> Power:
    """Safeguard of membership, power: the smallest p-value possible, the smallest AUC found, what is needed.

    Args:
        found: What was scored and tested.
        with_members: Whether the test of members against non-members counts.
    """
    alpha, smallest, tested = found.audit.alpha, list[float](), list[tuple[int, int, int]]()
    needed = dict[str, int]()
    if with_members and isinstance(found.membership, GroupTest):
        smallest.append(found.membership.smallest_p)
        tested.append((found.membership.above, found.membership.below, 1 if found.membership.equal else 2))
    if not (found.scores.complete and smallest) and found.units is not None and found.decisions is not None:
        smallest.append(_find_smallest_p(found))
        ours, theirs = len(set(found.scores.candidates.users)), int(found.units.controls.max(initial=0))
        tested.append((ours, theirs, _count_corrections(found)))
    if found.units is not None:
        wanted = count_controls_to_identify_one(found)
        if int(found.units.controls.min(initial=0)) < wanted:
            needed["control_users_to_identify_one"] = wanted
    if not smallest:
        return Power(needed=needed)
    if len(smallest) * min(smallest) > alpha:
        needed |= _count_enough_users(found, alpha=alpha / len(smallest))
    detectable = (minimum_detectable_auc(a, b, alpha=alpha / len(tested) / factor) for a, b, factor in tested)
    found_auc = [each for each in detectable if each is not None]
    return Power(
        smallest_p=min(1.0, len(smallest) * min(smallest)),
        minimum_detectable_effect=min(found_auc) if found_auc else None,
        effect_unit=f"AUC of {_name_sides(found)}, found in 80 % of runs" if found_auc else None,
        needed=needed,
    )


def _count_corrections(found: Inference) -> int:
    """Safeguard of membership, power: by how much the p-values of candidates against controls are multiplied."""
    assert found.units is not None  # noqa: S101 - asked for only then
    group, cut = found.group_test, 2 if int(found.units.draws.max(initial=1)) > 1 else 1
    return cut if group is None or group.equal else 2 * cut


def count_controls_to_identify_one(found: Inference) -> int:
    """Safeguard of membership, power: how many control users it takes to identify one candidate alone.

    Twice as many where candidates are cut to the amounts of the controls several times.
    """
    wanted = required_controls(found.audit.alpha, tests=max(1, len(found.scores.candidates)))
    return 2 * wanted + 1 if found.units is not None and int(found.units.draws.max(initial=1)) > 1 else wanted


def _name_sides(found: Inference) -> str:
    """Safeguard of membership: which users are compared to decide the outcome, in words."""
    return "members against non-members" if found.by_truth else "users against controls"


def _count_enough_users(found: Inference, *, alpha: float) -> dict[str, int]:
    """Safeguard of membership, power: how many non-members, or control users, would be enough to find anything.

    Nothing where there are as many, and ties are what costs the power.
    """
    if found.by_truth and isinstance(found.membership, GroupTest):
        level = alpha if found.membership.equal else alpha / 2  # twice the median of several cuts
        enough, have = count_needed_controls(found.membership.above, alpha=level), found.membership.below
        return {"non_member_users": enough} if enough > have else {}
    if found.decisions is None or found.units is None:
        return {}
    holm = len(found.decisions.p) if found.decisions.correction == "holm" else 1
    users = len(set(found.scores.candidates.users))
    enough = count_needed_controls(users, alpha=alpha / 2, tests=holm)
    return {"control_users": enough} if enough > int(found.units.controls.max(initial=0)) else {}


def _find_smallest_p(found: Inference) -> float:
    """Safeguard of membership, power: the smallest p-value that these controls could have given."""
    units, decisions = found.units, found.decisions
    assert units is not None  # noqa: S101 - asked for only then
    assert decisions is not None  # noqa: S101
    tests = len(decisions.p) if decisions.correction == "holm" else 1
    sides = [each.values for each in (found.scores.candidates, found.scores.controls) if each is not None]
    if len(np.unique(np.concatenate(sides))) == 1:
        return 1.0  # all scores are the same, and so is every p-value
    single = min(
        (
            smallest_conformal_p(int(controls), tests=tests, draws=int(draws))
            for controls, draws in {*zip(units.controls.tolist(), units.draws.tolist(), strict=True)}
        ),
        default=1.0,
    )
    group = found.group_test
    if group is None:
        return single
    if group.equal:
        # all candidates above all controls: no other labels give as small a p-value, but few permutations can be told
        return max(group.smallest_p, min(2 * group.smallest_p, COARSE))
    return min(1.0, 2 * min(single, group.smallest_p))


def _do_safeguards_fail(checked: Comparability | NotEnoughData) -> bool:
    """Safeguard of membership: whether the guard found two sides not to be comparable."""
    return isinstance(checked, Comparability) and not checked.comparable


def _list_guarded_sides(found: Inference, *, by_truth: bool) -> tuple[Side, Side]:
    """Safeguard of membership, the guard: the two sides that decide the outcome."""
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


def _check_sides(
    found: Inference, above: Side, below: Side, names: Sides = AUDITED_AND_CONTROLS
) -> Comparability | NotEnoughData:
    """Safeguard of membership, the guard: how two sides compare without the model, at the amounts compared."""
    one, other = (_list_guarded_records(found, side) for side in (above, below))
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


def _list_guarded_records(found: Inference, side: Side) -> list[Record]:
    """Safeguard of membership: the records of one side, which the guard looks at."""
    return [record for record in found.evidence.corpora[side.role] if record.id in side.scores]


def _score_guarded_sides(found: Inference, above: Side, below: Side) -> tuple[Scores, Scores]:
    """Safeguard of membership: one score per user of both sides, to compare with the blind baseline."""
    if set(above.scores.users) & set(below.scores.users):
        return above.scores, below.scores
    matching = found.comparer.match_users(above, below)
    if matching.equal:
        return above.scores.average_by_user(), below.scores.average_by_user()
    return found.comparer.score_strata(matching, above, below)


def play_placebo(
    comparer: Comparer, above: Side, below: Side, *, single: bool, alpha: float, names: Sides = AUDITED_AND_CONTROLS
) -> Placebo:
    """Safeguard of membership, the placebo: how often users of the second side are accused, cut like the first.

    Args:
        comparer: Scores and matches.
        above: Those who are audited.
        below: Those who play them.
        single: Whether users are tested one by one, too.
        alpha: The significance level of the audit.
        names: What the two sides are called.
    """
    if not len(above.scores) or not len(below.scores):
        return Placebo(status="not_run", reason="One side has no records.")
    matching = comparer.match_users(above, below)
    if set(above.scores.users) & set(below.scores.users):
        return Placebo(status="not_run", reason="Users have records on both sides, so that nobody can play another.")
    scores = np.full((len(matching.strata), len(matching.controls)), np.nan)
    owner = np.full(len(matching.controls), -1, dtype=np.int64)
    for number, stratum in enumerate(matching.strata):
        usable, _, others = comparer.score_stratum(matching, stratum, 0, (above, below))
        scores[number, usable] = others[usable]
        owner[stratum.own_controls] = number
    table, seed = ScoreTable(scores=scores, owner=owner), comparer.evidence.seed
    rng = stream(seed, *labels.STREAM_MEMBERSHIP_PLACEBO)

    def decide(places: Ints) -> Bools:
        return accuse(table, places, single=single, alpha=alpha, rng=rng)

    return run_placebos(matching, decide, seed=seed, alpha=alpha, sides=names)


def add_safeguards(builder: ResultBuilder, found: Inference, validity: Validity) -> None:
    """Write the safeguards into a membership result, and withhold what they forbid."""
    builder.power, builder.placebo = validity.power, validity.placebo
    if any(each.name == "identified" and each.value > 0 for each in builder.findings):  # so that nobody is missing
        needed = {name: n for name, n in validity.power.needed.items() if name != "control_users_to_identify_one"}
        builder.power = validity.power.model_copy(update={"needed": needed})
    code = validity.conclusion.code
    naming = ["identified", "training_p", "any_member_p", "auc_against_controls"]
    naming += [f"flagged_at_fpr_{rate:g}" for rate in found.rates]
    truth = [each.name for each in builder.findings if each.name not in naming and each.name != "epsilon_from_canaries"]
    guard = validity.guard
    if isinstance(guard, Comparability):
        add_guard(builder, guard, withheld=(*naming, *truth) if found.by_truth else naming)
    else:
        builder.refuse("blind_auc", guard)
    if isinstance(validity.members, Comparability) and validity.membership_p != found.membership_p:
        explained = validity.members.comparable
        reason = _SPOILT[EXPLAINED_BY_TEXTS] if explained else validity.members.reason
        builder.withhold(*truth, code=EXPLAINED_BY_TEXTS if explained else NOT_COMPARABLE, reason=reason)
    if isinstance(validity.naming, Comparability) and validity.naming.comparable:
        builder.note("controls_comparable", _NAMING_CHECKED)
    if code in _SPOILT:
        reason = _PLACEBO_FAILED_BY_TRUTH if found.by_truth and code == PLACEBO_FAILED else _SPOILT[code]
        builder.withhold(*naming, *(truth if found.by_truth else ()), code=code, reason=reason)
    elif code == NO_POWER:
        builder.withhold("identified", code=NO_POWER, reason=_NOBODY_COULD_BE_IDENTIFIED)
    elif code is None and not validity.naming_is_valid and isinstance(validity.naming, Comparability):
        builder.withhold(*naming, code=NOT_COMPARABLE, reason=validity.naming.reason)
