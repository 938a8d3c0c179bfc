"""The verdict of the membership audit: one sentence that a lawyer can read."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.audits.membership.scores import By
from recollect.results.result import Finding, Outcome


@dataclass(frozen=True, kw_only=True)
class Case:
    """All that the verdict depends on."""

    outcome: Outcome
    by: By
    signal: str
    candidates: int
    controls: int | None
    """How many controls there are; None if none are given."""
    identified: int
    """How many candidates are identified individually."""
    training_p: float | None
    """The p-value of "as a group, candidates score like the controls"."""
    auc: Finding | None
    """How well members are distinguished from non-members, where they are known."""


def build_verdict(case: Case) -> str:
    """One sentence for a reader who knows neither statistics nor machine learning."""
    if case.outcome == "inconclusive":
        return f"This cannot be determined from this data: {_count(case)} are too few."
    if case.auc is not None:
        return _describe_known(case, case.auc)
    if case.outcome == "found":
        group = f"as a group they score above the controls (p = {case.training_p:.2g}), and " if case.training_p else ""
        return f"Some of the {_name_candidates(case)} were in the training data: {group}{_describe_identified(case)}."
    return (
        f"No evidence that any of the {_name_candidates(case)} was in the training data: they score like the controls."
    )


def _describe_known(case: Case, auc: Finding) -> str:
    """The verdict where members and non-members are known."""
    low, high = auc.interval or (0.0, 1.0)
    measured = f"AUC {auc.value:.2f}, between {low:.2f} and {high:.2f}, by the signal {case.signal}"
    who = _describe_identified(case)
    if case.outcome == "found":
        return f"The model reveals which {case.by}s it was trained on ({measured}); {who}."
    return f"No evidence that the model reveals which {case.by}s it was trained on ({measured}); {who}."


def _describe_identified(case: Case) -> str:
    """How many candidates are identified, or why none is."""
    if case.controls is None:
        return "without controls, no candidate is identified individually"
    number = f"{case.identified:,}" if case.identified else "none"
    verb = "are" if case.identified > 1 else "is"
    return f"{number} of the {_name_candidates(case)} {verb} identified individually"


def _count(case: Case) -> str:
    """How many candidates and controls there are."""
    if case.controls is None:
        return _name_candidates(case)
    return f"{_name_candidates(case)} and {case.controls:,} control{'' if case.controls == 1 else 's'}"


def _name_candidates(case: Case) -> str:
    """What the candidates are called, with their number."""
    return f"{case.candidates:,} candidate {case.by}{'' if case.candidates == 1 else 's'}"
