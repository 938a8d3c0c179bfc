"""The verdict of the provenance audit: one sentence that a lawyer can read."""

from __future__ import annotations

import numpy as np

from recollect.audits.common.outcomes import NOT_COMPARABLE, Conclusion
from recollect.audits.provenance.comparison import TestRule
from recollect.audits.provenance.decisions import Decisions
from recollect.audits.provenance.needed_controls import count_expected_highest, count_needed_calibration
from recollect.audits.provenance.safeguards import SPOILT, Safeguards
from recollect.stats.requirements import required_controls

_UNKNOWN = "This cannot be determined from this data"
_IF_SAME_PERIOD = (
    " When the texts were written is not known: if the controls wrote in another period, this may be that difference, "
    "which words alone hardly show and a time column would."
)


def build_verdict(decisions: Decisions, conclusion: Conclusion, safeguards: Safeguards, rule: TestRule) -> str:
    """The verdict on whether people's texts were used, for a reader who knows no statistics.

    Args:
        decisions: About each person.
        conclusion: What may be concluded after all checks.
        safeguards: What is known beside the decisions.
        rule: From when on somebody is tested, and at which level.
    """
    outcome, alpha = conclusion.outcome, rule.alpha
    many, people = int(decisions.valid.sum()), _name_people(int(decisions.valid.sum()))
    if outcome == "inconclusive":
        copied = len(safeguards.duplicates.audited) if conclusion.code == "too_little_text" else 0
        return _explain_failed_safeguards(str(conclusion.code), safeguards) or (
            f"{_UNKNOWN}: {_explain_inconclusive_provenance(decisions, conclusion, safeguards, rule)}"
            + " Audited texts that repeat another one, or were left out because somebody else wrote nearly the same: "
            f"{copied}." * bool(copied)
        )
    compared = safeguards.comparability is None or safeguards.comparability.periods_compared
    condition = _IF_SAME_PERIOD if outcome == "found" and not compared else ""
    if many == 1:
        return _describe_one_person(decisions, found=outcome == "found") + condition
    if outcome == "not_found":
        return (
            f"No evidence that the texts of any of the {people} were used to train this model: it does not predict "
            "their words significantly better than those of people who are known not to be in its training data."
        )
    return (
        f"The texts of {int(decisions.flagged.sum())} of {people} were used to train this model: it predicts their "
        "words better than those of people who are known not to be in its training data. Of all findings made in this "
        f"way, at most {alpha:.0%} are expected to be false.{condition}"
    )


def _describe_one_person(decisions: Decisions, *, found: bool) -> str:
    """The verdict on a single person."""
    (index,) = np.flatnonzero(decisions.valid)
    p, others = float(decisions.p[index]), int(decisions.compared_with[index])
    above = round(p * (others + 1)) - 1
    whose = "this person's texts"
    if (people := len(decisions.users)) > 1:
        whose = f"the texts of the only one of {people:,} people about whom this could be decided"
    used = f"{'Evidence' if found else 'No evidence'} that {whose} were used to train this model"
    known = f"{others} people who are known not to be in its training data"
    if decisions.cut[index]:
        better = "predicts them better" if found else "does not predict them significantly better"
        return f"{used}: it {better} than as many texts of {known} (p = {p:.2g})."
    if found:
        better = f"{f'only {above}' if above else 'none'} of {known} {'are' if above > 1 else 'is'} predicted as well"
    else:
        better = f"{above} of {known} {'is' if above == 1 else 'are'} predicted as well or better"
    return f"{used}: {better} (p = {p:.2g})."


def _explain_failed_safeguards(code: str, safeguards: Safeguards) -> str:
    """In the verdict on people: why nothing may be concluded from the p-values; empty if safeguards are not why."""
    comparability = safeguards.comparability
    if code == NOT_COMPARABLE and comparability is not None and not comparability.comparable:
        return f"{_UNKNOWN}. {comparability.reason}"
    if code in SPOILT:
        return f"{_UNKNOWN}. {SPOILT[code]}"
    return ""


def _explain_inconclusive_provenance(
    decisions: Decisions, conclusion: Conclusion, safeguards: Safeguards, rule: TestRule
) -> str:
    """Why the verdict on people is inconclusive, and what would be needed."""
    alpha, least, code = rule.alpha, rule.least, conclusion.code
    calibrating = int(decisions.compared_with.max(initial=0))
    if code == "too_little_text":
        return (
            f"no person has enough text. At least {least} words within the vocabulary of all models are needed per "
            f"person; the most that any person has is {int(decisions.words.max(initial=0))}."
        )
    if code == "too_few_controls":
        return (
            f"{f'at most {calibrating}' if calibrating else 'no'} calibration users have as many texts as a person "
            f"here and at least {least} words within the vocabulary of all models, and {required_controls(alpha)} are "
            "needed. Give more controls, or query more texts."
        )
    if code == "not_comparable" and decisions.withheld.any():
        return _explain_other_period(decisions, alpha)
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
    return _explain_missing_power(decisions, safeguards, alpha)


def _explain_other_period(decisions: Decisions, alpha: float) -> str:
    """In the verdict on people: why nobody is accused although somebody scores high enough."""
    many, withheld = len(decisions.users), int(decisions.withheld.sum())
    who = "this person's texts" if many == 1 else f"the texts of {withheld} of {_name_people(many)}"
    return (
        f"the model predicts {who} better than those of calibration users, but fewer than {required_controls(alpha)} "
        "of these wrote in the same period, and a model may know a period without having seen these texts. Give "
        "controls with texts of the same period, or compare longer periods (--period quarter)."
    )


def _explain_missing_power(decisions: Decisions, safeguards: Safeguards, alpha: float) -> str:
    """In the verdict on people: what was seen although nobody can be named, and how many controls would let them be."""
    many, highest = int(decisions.valid.sum()), int(decisions.highest.sum())
    needed = count_needed_calibration(decisions, alpha=alpha, together=max(1, highest))
    fewest = int(decisions.compared_with[decisions.highest].min(initial=int(decisions.compared_with.max(initial=0))))
    share = safeguards.supply.find_share(needed, usable=fewest)
    enough = f"at least {safeguards.supply.count_controls(needed):,} control users with as much text" + (
        "" if share is None else f", or --calibration {share:g} (calibration={share:g}) with those that there are,"
    )
    if not highest:
        return (
            f"with {fewest} calibration users who have as much text, no p-value can be {alpha:g} or less; {enough} "
            "would be enough."
        )
    expected = count_expected_highest(decisions)
    usual = f"{expected:.0f}" if expected >= 1 else f"{expected:.1g}"
    return (
        f"{highest} of {_name_people(many)} {'is' if highest == 1 else 'are'} predicted better than all {fewest} "
        f"calibration users with as much text; about {usual} would be expected by chance. With so few calibration "
        f"users nobody can be named at a false discovery rate of {alpha:.0%}: {enough} would be enough for so many "
        "people."
    )


def _name_people(number: int) -> str:
    """In the verdict: a number of people, in words."""
    return f"{number:,} {'person' if number == 1 else 'people'}"
