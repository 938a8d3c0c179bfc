"""The verdict of the provenance audit: one sentence that a lawyer can read."""

from __future__ import annotations

import numpy as np

from recollect.audits.provenance.decisions import Decisions, decide_outcome
from recollect.stats.requirements import required_controls

_UNKNOWN = "This cannot be determined from this data"


def build_verdict(decisions: Decisions, *, alpha: float, least: int) -> str:
    """One sentence for a reader who knows neither statistics nor machine learning.

    Args:
        decisions: About each person.
        alpha: The false discovery rate.
        least: How many words a person must have to be tested.
    """
    outcome, code = decide_outcome(decisions, least=least)
    many, people = int(decisions.valid.sum()), _name_people(int(decisions.valid.sum()))
    if outcome == "inconclusive":
        return f"{_UNKNOWN}: {_explain(decisions, str(code), alpha, least)}"
    if many == 1:
        return _describe_one(decisions, found=outcome == "found")
    if outcome == "not_found":
        return (
            f"No evidence that the texts of any of the {people} were used to train this model: it predicts their words "
            "no better than those of people who are known not to be in its training data."
        )
    return (
        f"The texts of {int(decisions.flagged.sum())} of {people} were used to train this model: it predicts their "
        "words better than those of people who are known not to be in its training data. Of all findings made in this "
        f"way, at most {alpha:.0%} are expected to be false."
    )


def _describe_one(decisions: Decisions, *, found: bool) -> str:
    """The verdict on a single person."""
    (index,) = np.flatnonzero(decisions.valid)
    p, others = float(decisions.p[index]), int(decisions.compared_with[index])
    above = round(p * (others + 1)) - 1
    known = f"of {others} people who are known not to be in its training data"
    if found:
        return (
            f"This person's texts were used to train this model: {f'only {above}' if above else 'none'} {known} "
            f"{'are' if above > 1 else 'is'} predicted as well (p = {p:.3g})."
        )
    return (
        f"No evidence that this person's texts were used to train this model: {above} {known} "
        f"{'is' if above == 1 else 'are'} predicted as well or better (p = {p:.2g})."
    )


def _explain(decisions: Decisions, code: str, alpha: float, least: int) -> str:
    """Why it is inconclusive, and what would be needed."""
    calibrating = int(decisions.compared_with.max(initial=0))
    if code == "too_little_text":
        return (
            f"no person has enough text. At least {least} words within the vocabulary of all models are needed per "
            f"person; the most that any person has is {int(decisions.words.max(initial=0))}."
        )
    if code == "too_few_controls":
        return (
            f"at most {calibrating} calibration users have as many texts as a person here and at least {least} words "
            f"within the vocabulary of all models, and {required_controls(alpha)} are needed. Give more controls, or "
            "query more texts."
        )
    if code == "not_comparable":
        tested = int(decisions.tested.sum())
        who, like = (
            ("this person writes", "this person does") if tested == 1 else (f"these {tested} people write", "they do")
        )
        reasons = sorted({reason for each in decisions.differences for reason in each.split(", ") if reason})
        return (
            f"{who} unlike all of the {calibrating} calibration users ({', '.join(reasons)}), so their scores cannot "
            f"be compared. Give controls who write as {like}."
        )
    many, highest = int(decisions.valid.sum()), decisions.highest
    return (
        f"{highest} of {_name_people(many)} {'is' if highest == 1 else 'are'} predicted better than all "
        f"of the {calibrating} "
        f"calibration users, but among so many people that may be a coincidence. At least "
        f"{required_controls(alpha * highest / many)} calibration users would be needed."
    )


def _name_people(number: int) -> str:
    """A number of people, in words."""
    return f"{number:,} {'person' if number == 1 else 'people'}"
