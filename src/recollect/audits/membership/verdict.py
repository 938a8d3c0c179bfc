"""The verdict of the membership audit: one sentence that a lawyer can read."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.audits.common.outcomes import EXPLAINED_BY_TEXTS, NO_POWER, NOT_COMPARABLE, PLACEBO_FAILED
from recollect.audits.membership.candidate_scores import By
from recollect.results.result import Finding, Outcome, Power
from recollect.results.summary_rows import state_p


@dataclass(frozen=True, kw_only=True)
class Case:
    """All that the verdict depends on."""

    outcome: Outcome
    code: str | None
    """Why it is inconclusive, if it is."""
    by: By
    candidates: int
    users: int
    """How many users the candidates belong to."""
    controls: int | None
    """How many controls there are; None if none are given."""
    identified: int | None
    """How many candidates are identified individually; None where that means nothing."""
    training_p: float | None
    """The p-value of "as a group, candidates score like the controls"."""
    membership_p: float | None
    """The p-value of "members score like non-members", where it takes part in the decision."""
    members: tuple[int, int]
    """How many users are compared as members and as non-members."""
    any_p: float | None
    """The p-value of "no candidate is a member", from the best candidate and from the group."""
    auc: Finding | None
    """How well members are distinguished from non-members, where they are known."""
    reason: str
    """In what the two sides differ, if they are not comparable."""
    power: Power
    """What could have been found."""
    alpha: float
    by_truth: bool
    """Whether members are compared with non-members, and not candidates with controls."""
    copied: tuple[int, int] = (0, 0)
    """Records of candidates and controls that were left out: they repeat another, or somebody else wrote the same."""


def build_verdict(case: Case) -> str:
    """The verdict on membership for a reader who knows neither statistics nor machine learning."""
    if case.outcome == "inconclusive":
        return f"This cannot be determined from this data: {_explain_inconclusive_membership(case)}"
    if case.auc is not None:
        return _describe_known_members(case, case.auc)
    if case.membership_p is not None:
        return _describe_matched_members(case, case.membership_p)
    return _describe_one_candidate(case) if case.candidates == 1 else _describe_candidates(case)


def _describe_one_candidate(case: Case) -> str:
    """The verdict on the only candidate, beside controls."""
    p = case.training_p if case.any_p is None else case.any_p
    stated = "" if p is None else f" ({state_p(p)})"
    if case.outcome == "found":
        return f"Evidence that the candidate {case.by} was in the training data: it scores above the controls{stated}."
    return (
        f"No evidence that the candidate {case.by} was in the training data: it does not score significantly above the "
        f"controls{stated}."
    )


def _describe_candidates(case: Case) -> str:
    """The verdict on several candidates, beside controls."""
    if case.outcome == "found":
        group = ""
        if case.training_p is not None and case.training_p <= case.alpha:
            group = f"as a group they score above the controls ({state_p(case.training_p)}), and "
        elif not case.identified and case.any_p is not None:
            group = f"the highest of their scores and all together are above the controls ({state_p(case.any_p)}), and "
        who = _describe_identified(case, "of them")
        return f"Some of the {_name_candidates(case)} were in the training data: {group}{who}."
    return (
        f"No evidence that any of the {_name_candidates(case)} was in the training data: they do not score "
        "significantly above the controls."
    )


def _explain_inconclusive_membership(case: Case) -> str:
    """Why the verdict on membership is inconclusive, in a sentence that goes on after a colon."""
    sides = "members and non-members" if case.by_truth else "candidates and controls"
    if case.code == NOT_COMPARABLE:
        return f"the {sides} are not comparable. {_name_compared_sides(case)}"
    if case.code == EXPLAINED_BY_TEXTS:
        return (
            f"the {sides} differ in their scores, but a classifier that never saw the model separates them as well by "
            "their texts alone."
        )
    if case.code == PLACEBO_FAILED and case.by_truth:
        return "the same audit accuses non-members in the place of the members."
    if case.code == PLACEBO_FAILED:
        return "the same audit accuses controls in the place of the candidates, and they cannot be members."
    if case.code == NO_POWER:
        smallest = 1.0 if case.power.smallest_p is None else case.power.smallest_p
        enough = case.power.needed.get("non_member_users" if case.by_truth else "control_users")
        who = "non-members with as much text" if case.by_truth else "control users"
        if not case.by_truth and enough is not None and case.by == "user" and enough <= (case.controls or 0):
            who += " with as much text"  # there are as many, and some of them have too little
        needed = "" if enough is None else f"; {enough:,} {who} would be enough"
        tied = ", many of whose scores are the same," if enough is None else ""
        return (
            f"with {_count_compared(case)}{tied} no scores could have been significant (the smallest possible "
            f"p-value is {smallest:.2g}){needed}."
        )
    copied = f" ({case.copied[0]:,} records of candidates and {case.copied[1]:,} of controls were left out because "
    copied += "they repeat another one, or somebody else wrote nearly the same)"
    return f"{_count_compared(case)} are too few{copied if any(case.copied) else ''}."


def _name_compared_sides(case: Case) -> str:
    """The guard's reason as the verdict says it, in the words of the two sides that were compared."""
    if not case.by_truth:
        return case.reason.replace("The audited and", "The candidates and")
    named = case.reason.replace("The audited and the controls", "The members and the non-members")
    return named.replace("Take controls", "Take non-members")


def _describe_known_members(case: Case, auc: Finding) -> str:
    """The verdict where members and non-members are known."""
    low, high = auc.interval or (0.0, 1.0)
    pairs = f"of two {case.by}s, a member and a non-member, the member is recognised in {auc.value:.0%} of cases"
    measured = f"{pairs} ({_state_percent(low)} to {_state_percent(high)}; 50% is expected of guessing)"
    who = _describe_identified(case)
    if case.outcome == "found":
        return f"The model reveals which {case.by}s it was trained on: {measured}; {who}."
    return f"No evidence that the model reveals which {case.by}s it was trained on: {measured}; {who}."


def _describe_matched_members(case: Case, p: float) -> str:
    """The verdict where members and non-members are known but have no AUC, because they are compared piece by piece."""
    if case.outcome == "found":
        return (
            "The model reveals what it was trained on: among records and users of the same amount, members score above "
            f"non-members ({state_p(p)}); {_describe_identified(case)}."
        )
    return (
        "No evidence that the model reveals what it was trained on: among records and users of the same amount, "
        f"members do not score significantly above non-members ({state_p(p)}); {_describe_identified(case)}."
    )


def _state_percent(share: float | None) -> str:
    """In the verdict: an end of an interval in percent; an open one is a question mark."""
    return "?" if share is None else f"{share:.0%}"


def _describe_identified(case: Case, whom: str | None = None) -> str:
    """In the verdict: how many candidates are identified, or why none is; `whom` where the sentence has named them."""
    if case.controls is None:
        return "without controls, no candidate is identified individually"
    if not case.candidates:
        return "nobody is identified individually, because every user has members and non-members among their records"
    if case.identified is None:
        return "no candidate is identified individually, because the controls are not comparable with them"
    if case.candidates == 1:
        return f"the candidate {case.by} is {'' if case.identified else 'not '}identified individually"
    number = f"{case.identified:,}" if case.identified else "none"
    verb = "are" if case.identified > 1 else "is"
    return f"{number} {whom or f'of the {_name_candidates(case)}'} {verb} identified individually"


def _count_compared(case: Case) -> str:
    """In the verdict: how many members and non-members, or candidates and controls, there are to be compared."""
    members, others = case.members
    if case.by_truth and (case.controls is None or members or others):
        return f"{members:,} user{'' if members == 1 else 's'} in the training set and {others:,} outside it"
    if case.controls is None:
        return _name_candidates(case)
    return f"{_name_candidates(case)} and {case.controls:,} control{'' if case.controls == 1 else 's'}"


def _name_candidates(case: Case) -> str:
    """In the verdict: what the candidates are called, with their number; few users are not taken for many people."""
    named = f"{case.candidates:,} candidate {case.by}{'' if case.candidates == 1 else 's'}"
    if case.by == "record" and case.users < case.candidates:
        named += f" of {case.users:,} user{'' if case.users == 1 else 's'}"
    return named
