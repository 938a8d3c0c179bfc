"""The verdicts of the removal audit: sentences that a lawyer can read."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from recollect.audits.removal.calibrated import SetEvidence
from recollect.audits.removal.decisions import DECISIONS, Decision, find_inconclusive_code
from recollect.results.result import Outcome
from recollect.results.summary_rows import state_p

MORE: Final = "more controls, or calibration models trained as the model was, are needed"
NEEDED: Final = {
    "target_damaged": "the model is damaged as a whole, and calibration models do not show how it would score members",
    "not_comparable": "controls of the same kind as the audited records are needed",
    "difficulty_differs": "for models that were not trained on them the records are easier or harder than the controls "
    "like them, so that controls as hard as they are needed",
    "no_calibration_models": "calibration models, trained with a recipe, are needed to show how members are scored",
    "placebo_failed": "controls in the place of the audited records are called still there more often than the stated "
    "rate allows, so that the test does not hold on this data",
    "explained_by_texts": "a classifier that never saw the model separates the records from the controls as well, so "
    "that controls more like them are needed",
}
"""What a decision would need, by the code of why there is none."""
WORDS: Final = {"inconclusive": "undetermined"}
"""Decisions that a sentence words differently."""


def build_set_verdict(decision: Decision, evidence: SetEvidence, *, confidence: float) -> str:
    """The verdict on whether a set was removed.

    Args:
        decision: The decision about it.
        evidence: What the decision rests on.
        confidence: The confidence level of the share still in.
    """
    records = f"{len(evidence.audited):,} audited {evidence.unit}s"
    if decision == "still there":
        return _describe_still_there(records, evidence, confidence)
    if decision == "over-unlearned":
        return (
            f"Over-unlearned: the model is less confident in the {records} than in records it was not trained on "
            f"({state_p(evidence.p_over_unlearned)}), which itself reveals that they were in the training set."
        )
    if decision == "gone":
        bound = _describe_largest_share(evidence)
        return f"Gone: there is no sign of the {records} in the model; {bound} of them can still be in it."
    return f"It cannot be determined from {records} whether they were removed; {_describe_need(evidence)}."


def build_user_verdict(decisions: NDArray[np.str_], unlike: str | None = None) -> str:
    """The verdict on whether people were removed: how many there are by decision.

    Args:
        decisions: About each person.
        unlike: In which respects the people differ from the controls, if they are not comparable: one or two sentences.

    >>> build_user_verdict(np.array(["gone", "still there", "inconclusive", "gone"]))
    'Of 4 people: 1 still there, 2 gone, 1 undetermined.'
    >>> build_user_verdict(np.array(["gone"]))
    "Gone: there is no sign of the person's records in the model."
    """
    if unlike is not None:
        whose = (
            "the person's records" if len(decisions) == 1 else f"the records of any of the {len(decisions):,} people"
        )
        return f"It cannot be determined from this data whether {whose} were removed. {unlike}"
    if len(decisions) == 1:
        return _describe_removed_person(decisions[0])
    counts = {decision: int((decisions == decision).sum()) for decision in DECISIONS}
    clauses = [f"{count:,} {WORDS.get(decision, decision)}" for decision, count in counts.items() if count]
    return f"Of {len(decisions):,} people: {', '.join(clauses)}."


def _describe_removed_person(decision: str) -> str:
    """The verdict on the removal of one person."""
    return {
        "still there": "Still there: the model shows more sign of the person's records than of those of controls.",
        "gone": "Gone: there is no sign of the person's records in the model.",
        "over-unlearned": "Over-unlearned: the model is less confident in the person's records than in records it was "
        "not trained on.",
    }.get(decision, "It cannot be determined from this data whether the person's records were removed.")


def build_ema_verdict(size: int, rho: float, outcome: Outcome) -> str:
    """The verdict of EMA, as published."""
    return f"EMA calls the {size:,} audited records {'memorised' if outcome == 'found' else 'removed'} (ρ = {rho:.2g})."


def build_ks_verdict(size: int, rho: float, outcome: Outcome) -> str:
    """The verdict of KS, as published."""
    return (
        f"KS calls the {size:,} audited records {'memorised' if outcome == 'found' else 'forgotten'} (ρ = {rho:.2f})."
    )


def _describe_still_there(records: str, evidence: SetEvidence, confidence: float) -> str:
    """In the verdict: how much is still there, or that it is, where the share cannot be estimated."""
    mixture = evidence.share_mixture
    if mixture is None or not mixture.identifiable:
        compared = f"the model shows more sign of the {records} than of the controls"
        return f"Still there: {compared} ({state_p(evidence.p_still_there)})."
    share = mixture.estimate_share(confidence)
    assert share.interval is not None  # noqa: S101 - it always has one
    limits = (
        f"between {share.interval.low:.0%} and {share.interval.high:.0%}"
        if share.interval.low > 0 or round(share.interval.high, 2) == 1
        else f"at most {share.interval.high:.0%}"
    )
    return (
        f"Still there: about {share.value:.0%} of the {records} are still in the model, {limits} "
        f"({state_p(evidence.p_still_there)})."
    )


def _describe_largest_share(evidence: SetEvidence) -> str:
    """In the verdict: the largest share that may still be in, with as few errors as the decision."""
    mixture = evidence.gone_mixture
    bound = 1.0 if mixture is None else mixture.bound_share(evidence.level)
    return "less than 1%" if bound < 0.005 else f"at most {bound:.0%}"


def _describe_need(evidence: SetEvidence) -> str:
    """In the verdict: what a decision about removal would need."""
    code = find_inconclusive_code(evidence)
    if code in NEEDED:
        return NEEDED[code]
    enough = None if evidence.mixture is None else evidence.mixture.find_sufficient_size()
    if enough is None or enough <= len(evidence.audited):
        return MORE
    return f"about {enough:,} would be enough"
