"""What an outcome means for the people in the data, how grave it is, and what to do about it.

An audit declares an `Advice` for each outcome; a run writes severity and next step into the result, a report adds
what it means. The steps are a short, fixed list (`STEPS`), each described on the page `docs/how-to/next-steps.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from recollect.results.result import Finding, Outcome, Result, Severity


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """Something to do about a finding."""

    title: str
    text: str
    """What to do, and why it helps, in one or two sentences."""
    pages: tuple[str, ...] = ()
    """Pages of the documentation that say more."""


STEPS: Final[Mapping[str, NextStep]] = {
    "hold-release": NextStep(
        title="Hold the release",
        text="Do not publish or deploy the model until the finding is resolved or the risk is accepted in writing.",
    ),
    "deduplicate": NextStep(
        title="Remove duplicates and sensitive values",
        text="Text that occurs often is memorised first. Remove duplicates, secrets and contact data from the training "
        "data with the command “recollect sanitise”, then train again and audit again.",
        pages=("how-to/canaries.md", "guides/leakage.md"),
    ),
    "train-less": NextStep(
        title="Train less on each record",
        text="Fewer epochs, early stopping, a lower LoRA rank or fewer trained layers reduce memorisation. Audit every "
        "checkpoint to see how much.",
        pages=("how-to/recipes.md", "methods/repeated-audits.md"),
    ),
    "private-training": NextStep(
        title="Train with differential privacy",
        text="Differential privacy bounds what any one record or user can change in the model. It is the only measure "
        "here with a guarantee; it costs accuracy.",
        pages=("how-to/private-training.md",),
    ),
    "retrain": NextStep(
        title="Retrain without the data",
        text="Train the model again without the records concerned, from a point before it saw them, and audit the "
        "removal again.",
        pages=("guides/removal.md",),
    ),
    "restrict-access": NextStep(
        title="Restrict what the model shows",
        text="Do not show probabilities, limit requests, filter outputs. This hides memorised text; it does not remove "
        "it from the model.",
        pages=("how-to/models.md",),
    ),
    "notify": NextStep(
        title="Inform those responsible",
        text="Tell the data protection officer. Whether authorities or the persons concerned must be informed depends "
        "on the data and the law that applies.",
        pages=("how-to/report.md",),
    ),
    "check-basis": NextStep(
        title="Check the right to use the data",
        text="Check from where these texts came, and on what legal basis they were used for training.",
        pages=("guides/provenance.md",),
    ),
    "replace-secrets": NextStep(
        title="Replace the secrets",
        text="Treat real secrets in the training data as disclosed: change passwords, keys and numbers.",
        pages=("guides/exposure.md",),
    ),
    "repeat": NextStep(
        title="Repeat the audit when something changes",
        text="No evidence is no proof of absence. Audit again after each new training run, and with stronger access or "
        "more data where the stakes are high.",
        pages=("methods/repeated-audits.md",),
    ),
    "improve-data": NextStep(
        title="Give the audit better data",
        text="More controls, and controls that resemble the audited records in amount, kind and period, allow a "
        "decision. The remarks of the audit say how many would be needed.",
        pages=("methods/pitfalls.md",),
    ),
}
"""Everything that a report may suggest, by the name of its heading in `docs/how-to/next-steps.md`."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What an outcome of an audit means, and what to do about it."""

    meaning: str
    """What it means for the people in the data, in plain words."""
    severity: Severity | None = None
    """How grave it is; None where that cannot be said."""
    steps: tuple[str, ...] = ()
    """What to do, the first thing first, by name in `STEPS`."""
    raised_by: tuple[str, ...] = ()
    """Findings that make it grave: where one of them is above 0, the severity is high."""


NOTHING_DECIDED: Final = Advice(
    meaning="The data did not allow a decision. This is neither evidence of memorisation nor evidence against it.",
    steps=("improve-data",),
)
"""The advice on every inconclusive outcome, unless an audit has its own."""
DEFAULT_ADVICE: Final[Mapping[Outcome, Advice]] = {
    "found": Advice(
        meaning="The audit found what its question asks for. It does not declare what that means for the people in the "
        "data: treat it as a disclosure until those who know the audit have judged it.",
        severity="medium",
        steps=("hold-release", "notify"),
    ),
    "not_found": Advice(
        meaning="The audit did not find what its question asks for. That does not prove that there is nothing.",
        severity="none",
        steps=("repeat",),
    ),
    "inconclusive": NOTHING_DECIDED,
}
"""The advice on each outcome for which an audit, such as one of a plug-in, declares none of its own."""


def choose_advice(result: Result, declared: Mapping[Outcome, Advice]) -> Advice | None:
    """The advice on a result: its audit's own, or `DEFAULT_ADVICE`; None where nothing was done."""
    if not result.findings and (result.failed or result.skipped):
        return None
    return declared.get(result.outcome, DEFAULT_ADVICE[result.outcome])


def add_advice(result: Result, declared: Mapping[Outcome, Advice]) -> Result:
    """The result with severity and next step, of itself and of the findings that make it grave.

    What an audit has set itself is kept.
    """
    advice = choose_advice(result, declared)
    if advice is None:
        return result
    step = STEPS[advice.steps[0]].text if advice.steps else None
    graded = tuple(_grade_severity(finding, advice, step) for finding in result.findings)
    severity: Severity | None = (
        "high" if any(_raises_severity(each, advice) for each in result.findings) else advice.severity
    )
    return result.replace(
        findings=graded, severity=result.severity or severity, next_step=result.next_step or summarise_steps(advice)
    )


def _raises_severity(finding: Finding, advice: Advice) -> bool:
    """Whether a finding raises the severity on which advice is given."""
    return finding.name in advice.raised_by and finding.value > 0


def _grade_severity(finding: Finding, advice: Advice, step: str | None) -> Finding:
    """A finding that makes the outcome grave, with severity and next step of its advice; any other as it is."""
    if not _raises_severity(finding, advice):
        return finding
    update = {"severity": finding.severity or "high", "next_step": finding.next_step or step}
    return finding.model_copy(update=update)


def summarise_steps(advice: Advice | None) -> str | None:
    """The titles of all steps of an advice in one sentence.

    >>> summarise_steps(Advice(meaning="Bad.", steps=("retrain", "notify")))
    'Retrain without the data; inform those responsible.'
    """
    titles = [STEPS[name].title for name in (() if advice is None else advice.steps)]
    if not titles:
        return None
    rest = [title[0].lower() + title[1:] for title in titles[1:]]
    return "; ".join([titles[0], *rest]) + "."
