"""Rounds: what an audit needs is gathered, shown to it, and gathered again, until it needs nothing new."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from recollect.audits.audit import Audit, Needs
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.errors import PlanError, RecollectError
from recollect.models.model import Model
from recollect.signals.evidence import Answered, Evidence
from recollect.signals.signal import require_access

MOST_ROUNDS = 10
"""No audit learns from its evidence what to ask next more often than this."""

Ask = Callable[[Model, Corpus], Answered]
"""Asks a model about a corpus and says where the answers are."""
Train = Callable[[Cohorts, Corpus], Mapping[str, Model]]
"""Trains the models of some cohorts of a corpus; gives them by their parts."""


def refuse_missing(
    audit: Audit, parts: Collection[str], *, files: Mapping[str, Path] | None = None, trainable: bool = False
) -> Needs:
    """What round 0 needs, if the user gave all parts; called before anything is even loaded.

    Args:
        audit: The audit.
        parts: The parts that the user gave a model, a corpus or a file for.
        files: Those of them that are files.
        trainable: Whether a recipe is given.

    Raises:
        PlanError: A model, corpus or file is missing.
    """
    needs = audit.needs(Evidence(files=files or {}, trainable=trainable))
    if missing := sorted(needs.given.difference(parts)):
        raise _nobody_plays(missing, needs.advice)
    return needs


def refuse_impossible(audit: Audit, evidence: Evidence) -> Needs:
    """What round 0 needs, if the user gave it; called before anything is trained or asked.

    Args:
        audit: The audit.
        evidence: The models, corpora and files that the user gave.

    Raises:
        AccessError: A model does not show enough.
        PlanError: A model, corpus or file is missing.
    """
    needs = refuse_missing(audit, evidence.parts, files=evidence.files, trainable=evidence.trainable)
    require_access(audit.name, needs.access, evidence)
    return needs


def gathered(audit: Audit, evidence: Evidence, *, ask: Ask, train: Train) -> Evidence:
    """All evidence that the audit needs.

    Args:
        audit: The audit.
        evidence: The models, corpora, cohorts and files that the user gave.
        ask: Asks a model about a corpus.
        train: Trains models.

    Raises:
        AccessError: A model does not show enough; nothing was trained or asked.
        PlanError: A model, corpus or file is missing; nothing was trained or asked.
    """
    refuse_impossible(audit, evidence)
    for _ in range(MOST_ROUNDS):
        needs = audit.needs(evidence)
        require_access(audit.name, needs.access, evidence)
        more = _derived(evidence, needs)
        more = _trained(more, needs, train)
        more = _asked(more, needs, ask)
        if more is evidence:
            return evidence
        evidence = more
    raise RecollectError(
        f"The {audit.name} audit still needed something new after {MOST_ROUNDS} rounds.",
        do="This is a fault of the audit: what it needs must follow from its evidence and come to an end.",
    )


def _derived(evidence: Evidence, needs: Needs) -> Evidence:
    """The evidence with the corpora that follow from others."""
    new = {part: corpus for part, corpus in needs.corpora.items() if part not in evidence.corpora}
    return replace(evidence, corpora={**evidence.corpora, **new}) if new else evidence


def _trained(evidence: Evidence, needs: Needs, train: Train) -> Evidence:
    """The evidence with the models that had to be trained, and with who trained them."""
    for part, wanted in needs.train.items():
        new = {name: wanted.members(name) for name in wanted.models if name not in evidence.models}
        if not new:
            continue
        cohorts = Cohorts.of(new, units=wanted.units, unit=wanted.unit, corpus=wanted.corpus, seed=wanted.seed)
        known = evidence.cohorts.get(part)
        evidence = replace(
            evidence,
            models={**evidence.models, **train(cohorts, evidence.corpora[part])},
            cohorts={**evidence.cohorts, part: cohorts if known is None else known.joined(cohorts)},
        )
    return evidence


def _asked(evidence: Evidence, needs: Needs, ask: Ask) -> Evidence:
    """The evidence with the answers that were missing, asked in an order that does not depend on chance."""
    new = sorted(needs.ask - evidence.answers.keys())
    if not new:
        return evidence
    missing = sorted({model for model, _ in new} - evidence.models.keys())
    missing += sorted({corpus for _, corpus in new} - evidence.corpora.keys())
    if missing:
        raise _nobody_plays(missing)
    found = {(model, corpus): ask(evidence.models[model], evidence.corpora[corpus]) for model, corpus in new}
    return replace(evidence, answers={**evidence.answers, **found})


def _nobody_plays(parts: list[str], advice: str = "") -> PlanError:
    """What to say of models and corpora that are needed and not there."""
    named = " and ".join(repr(part) for part in parts)
    return PlanError(
        f"The audit needs {named}, and nothing of that part is given.",
        do=advice or f"Give {named}.",
        code="missing_role",
    )
