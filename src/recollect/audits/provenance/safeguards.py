"""The safeguards of provenance: the guard (are people comparable), the power of the design, and a placebo."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from recollect.audits.common.duplicates import Duplicates
from recollect.audits.common.guard import Comparability, add_guard, check_matched, explains_scores
from recollect.audits.common.matching import Matching, match_amounts
from recollect.audits.common.outcomes import EXPLAINED_BY_TEXTS, NO_POWER, PLACEBO_FAILED, Conclusion, conclude
from recollect.audits.common.placebo import PlaceboRun, run_placebo
from recollect.audits.common.power import minimum_detectable_auc
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.provenance.comparison import ComparisonScorer, TestRule, compare_people
from recollect.audits.provenance.decisions import Decisions, correct_for_people, decide_outcome
from recollect.audits.provenance.needed_controls import ControlSupply, count_needed_calibration
from recollect.audits.provenance.queries import find_owner
from recollect.audits.provenance.text_amounts import TextAmounts
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.corpora.times import Period
from recollect.errors import NotEnoughData
from recollect.results.result import Placebo, Power
from recollect.signals.scores import Scores

PLACEBO_RUNS = 40
"""How many times calibration users play the audited people."""
TESTED = ("users_found", "lowest_p_corrected", "accuracy", "precision", "recall", "false_positive_rate")
"""The findings that mean nothing if the people are not comparable with the calibration users."""

SPOILT: Final = {
    EXPLAINED_BY_TEXTS: "A classifier that never saw the model separates these people from the calibration users by "
    "their texts as well as the model's scores do. Give controls who write about the same things.",
    PLACEBO_FAILED: "The same test also accuses calibration users in the place of the audited people.",
}
"""Why nothing may be concluded from p-values although people are comparable, by code."""
_UNDECIDED: Final = (
    "With so few calibration users nobody could be named, so that how many are, and how often that is right, says "
    "nothing. The verdict says how many controls would be enough."
)
"""Why decisions, and how good they are, mean nothing where the design had no power."""
DECIDED = tuple(name for name in TESTED if name != "lowest_p_corrected")
"""The findings that count decisions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Safeguards:
    """What is known of a comparison beside its p-values."""

    duplicates: Duplicates
    """Texts that are not queried, because somebody else wrote nearly the same, or the person did before."""
    comparability: Comparability | None
    """Without the target; None where there is too little to compare."""
    placebo: Placebo | None
    matching: Matching
    supply: ControlSupply
    """How many controls there are, of which some calibrate."""


def check_people(
    matching: Matching, sides: tuple[Corpus, Corpus], *, seed: int, period: Period
) -> Comparability | None:
    """Safeguard of provenance, the guard: are the audited people, even one, like the calibration users, if known.

    Args:
        matching: Who is compared with whom.
        sides: The queries of the audited people and of the calibration users.
        seed: Of the run.
        period: The calendar period by which dates are compared.
    """
    if not matching.strata:
        return None
    try:
        return check_matched(
            matching, _iter_guarded_texts(sides[0], 0), _iter_guarded_texts(sides[1], 1), seed=seed, period=period
        )
    except NotEnoughData:
        return None


def _iter_guarded_texts(corpus: Corpus, side: int) -> Iterator[Record]:
    """Safeguard of provenance, the guard: the texts of one side, under the names of the matching."""
    return (replace(record, id=f"{side}{record.id}", user=find_owner(record)) for record in corpus)


def play_placebo(
    scorer: ComparisonScorer, amounts: TextAmounts, matching: Matching, rule: TestRule, *, seed: int
) -> Placebo:
    """Safeguard of provenance, the placebo: how often its tests accuse calibration users cut like the audited.

    Args:
        scorer: The method.
        amounts: How much everybody has.
        matching: Of the audited people with the calibration users.
        rule: From when on somebody is tested, and at which level.
        seed: Of the run.
    """

    def accuse(run: PlaceboRun) -> bool:
        """Whether any of the calibration users that play the audited is found."""
        played = match_amounts(run.audited, run.controls, seed=seed)
        base, (owners, texts) = amounts.counts.copy(), np.array([amounts.find(name) for name in run.audited.pieces]).T
        base[owners] = 0
        base[owners, texts] = run.audited.tokens
        found = compare_people(scorer, amounts, played, rule, base)
        people = amounts.find_units(played)[0]
        return bool((np.nan_to_num(correct_for_people(found, people), nan=1.0) <= rule.alpha).any())

    return run_placebo(matching, accuse, seed=seed, alpha=rule.alpha, runs=PLACEBO_RUNS)


def add_safeguards(builder: ResultBuilder, decisions: Decisions, found: Safeguards, rule: TestRule) -> Conclusion:
    """Write the safeguards into a provenance result; what may be concluded after all of them.

    Args:
        builder: Of the result; its findings are complete.
        decisions: About each person.
        found: What is known beside them.
        rule: From when on somebody is tested, and at which level.
    """
    outcome, code = decide_outcome(decisions, least=rule.least)
    undecided = code == NO_POWER
    if undecided:  # the guard comes first
        outcome, code = "not_found", None
    builder.dropped |= found.duplicates.counts
    builder.placebo = found.placebo
    builder.power, attainable = state_power(decisions, found.supply, rule)
    attainable &= not undecided
    named = {finding.name for finding in builder.findings}
    if found.comparability is None or not decisions.tested.any():
        conclusion = conclude(outcome, code=code, placebo=found.placebo, attainable=attainable)
        _withhold_spoilt(builder, conclusion, named)
        return conclusion
    add_guard(builder, found.comparability, withheld=[name for name in TESTED if name in named])
    if decisions.matched.any():
        builder.note(
            "amounts_matched",
            f"{int(decisions.matched.sum())} of {len(decisions.users)} people do not have as much text as the "
            "calibration users: they are compared from as many texts and words, of the same periods where times are "
            "known.",
        )
    explained = explains_scores(found.comparability, *_collect_guarded_scores(decisions, found.matching))
    conclusion = conclude(
        outcome,
        code=code,
        guard=builder.guard,
        placebo=found.placebo,
        explained=explained,
        attainable=attainable,
    )
    _withhold_spoilt(builder, conclusion, named)
    return conclusion


def _withhold_spoilt(builder: ResultBuilder, conclusion: Conclusion, named: Set[str]) -> None:
    """Safeguard of provenance: take back findings of an inconclusive run that count decisions nobody could make."""
    if conclusion.code in SPOILT:
        builder.withhold(
            *(name for name in TESTED if name in named), code=conclusion.code, reason=SPOILT[conclusion.code]
        )
    if conclusion.code == NO_POWER:
        builder.withhold(*(name for name in DECIDED if name in named), code=NO_POWER, reason=_UNDECIDED)


def state_power(decisions: Decisions, supply: ControlSupply, rule: TestRule) -> tuple[Power, bool]:
    """Safeguard of provenance, power: what it could have found, and whether any outcome could be significant.

    What is needed is told in control users, whom a user can add, and not in calibration users, who are a share of them.
    """
    people, smallest = int(decisions.valid.sum()), decisions.smallest[decisions.tested]
    least = float(smallest.min(initial=1.0))
    power = Power(
        smallest_p=least,
        minimum_detectable_effect=minimum_detectable_auc(
            1, int(decisions.compared_with.max(initial=0)), alpha=rule.alpha / max(1, people)
        ),
        effect_unit="AUC of one person against calibration users",
        needed=_count_needed(decisions, supply, rule),
    )
    return power, least <= rule.alpha


def _count_needed(decisions: Decisions, supply: ControlSupply, rule: TestRule) -> dict[str, int]:
    """Safeguard of provenance, power: the control users that are missing; nothing where there are enough."""
    highest = int(decisions.highest.sum())
    have = int(decisions.compared_with.max(initial=0))
    if decisions.tested.any() and highest and not decisions.flagged.any():
        together = count_needed_calibration(decisions, alpha=rule.alpha, together=highest)
        return {"control_users": supply.count_controls(together)}
    alone = count_needed_calibration(decisions, alpha=rule.alpha)
    name = "control_users_to_find_one_person" if decisions.valid.sum() > 1 else "control_users"
    return {name: supply.count_controls(alone)} if have < alone else {}


def _collect_guarded_scores(decisions: Decisions, matching: Matching) -> tuple[Scores, Scores]:
    """Safeguard of provenance: the scores of both sides, to compare with the blind baseline."""
    names = matching.controls.units
    ours = {user: value for user, value in zip(decisions.users, decisions.score, strict=True) if not np.isnan(value)}
    known = zip(decisions.calibrating, decisions.calibration, strict=True)
    theirs = {user: value for user, value in known if user in names and not np.isnan(value)}
    return _build_guarded_scores(ours), _build_guarded_scores(theirs)


def _build_guarded_scores(values: dict[str, float]) -> Scores:
    """Safeguard of provenance: one score per person, to compare with the blind baseline."""
    return Scores(tuple(values), tuple(values), np.array(list(values.values()), dtype=np.float64))
