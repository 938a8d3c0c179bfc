"""Rounds: the evidence that an audit needs is collected and passed to it again, until it needs nothing new."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from recollect.audits.audit import Audit, Needs
from recollect.audits.common.ground_truth import find_members, has_both
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.errors import PlanError, RecollectError
from recollect.models.model import Model
from recollect.signals.evidence import AUDITED, TARGET, Evidence, EvidenceAnswers
from recollect.signals.signal import require_access

MAX_ROUNDS = 10
"""The most rounds in which an audit may derive new needs from its evidence."""

ScoreCorpus = Callable[[Model, Corpus], EvidenceAnswers]
"""Scores a corpus with a model and returns where the answers are stored."""
TrainCohorts = Callable[[Cohorts, Corpus], Mapping[str, Model]]
"""Trains the models of some cohorts of a corpus; returns them by role."""


def refuse_missing(
    audit: Audit,
    roles: Collection[str],
    *,
    files: Mapping[str, Path] | None = None,
    trainable: bool = False,
    members: bool = False,
) -> Needs:
    """What round 0 needs, if the user gave all roles; called before anything is even loaded.

    Args:
        audit: The audit.
        roles: The roles that the user gave a model, a corpus or a file for.
        files: Those of them that are files.
        trainable: Whether a recipe is given.
        members: Whether both members and non-members may be known. Before the corpus is read it is enough that
            they are named at all; `refuse_impossible` then checks who they are.

    Raises:
        PlanError: A model, corpus or file is missing: code `missing_` and its role, or `missing_roles` for several.
    """
    needs = audit.needs(Evidence(files=files or {}, trainable=trainable))
    _check_roles_given(audit, needs, roles, members=members)
    return needs


def refuse_impossible(audit: Audit, evidence: Evidence, first: Needs | None = None) -> Needs:
    """What round 0 needs, if the user gave it; called before anything is trained or scored.

    Args:
        audit: The audit.
        evidence: The models, corpora and files that the user gave.
        first: What round 0 needs, where `refuse_missing` was called before.

    Raises:
        AccessError: A model offers too little access.
        PlanError: A model, corpus or file is missing.
    """
    needs = first or audit.needs(Evidence(files=evidence.files, trainable=evidence.trainable))
    members = bool(needs.unless_members) and has_both(find_members(evidence))
    _check_roles_given(audit, needs, evidence.roles, members=members)
    require_access(audit.name, needs.access, evidence)
    return needs


def collect_evidence(
    audit: Audit, evidence: Evidence, *, score: ScoreCorpus, train: TrainCohorts, first: Needs | None = None
) -> Evidence:
    """All evidence that the audit needs, collected round by round.

    Args:
        audit: The audit.
        evidence: The models, corpora, cohorts and files that the user gave.
        score: Scores a corpus with a model.
        train: Trains models.
        first: What round 0 needs, where that was determined before; None to determine and check it here.

    Raises:
        AccessError: A model offers too little access; nothing was trained or scored.
        PlanError: A model, corpus or file is missing; nothing was trained or scored.
    """
    refuse_impossible(audit, evidence, first)
    for _ in range(MAX_ROUNDS):
        needs = audit.needs(evidence)
        require_access(audit.name, needs.access, evidence)
        more = _add_derived_corpora(evidence, needs)
        more = _train_missing_models(more, needs, train)
        more = _score_missing_answers(audit.name, more, needs, score)
        if more is evidence:
            return evidence
        evidence = more
    raise RecollectError(
        f"The {audit.name} audit still needed something new after {MAX_ROUNDS} rounds.",
        do="This is a bug in the audit: its needs must follow from its evidence and converge.",
        code="too_many_rounds",
    )


def _add_derived_corpora(evidence: Evidence, needs: Needs) -> Evidence:
    """The evidence of a round with the corpora that are derived from others."""
    new = {role: corpus for role, corpus in needs.corpora.items() if role not in evidence.corpora}
    return replace(evidence, corpora={**evidence.corpora, **new}) if new else evidence


def _train_missing_models(evidence: Evidence, needs: Needs, train: TrainCohorts) -> Evidence:
    """The evidence of a round with the models that had to be trained, and with their members."""
    for role, wanted in needs.train.items():
        new = {name: wanted.members(name) for name in wanted.models if name not in evidence.models}
        if not new:
            continue
        cohorts = Cohorts.of(new, units=wanted.units, unit=wanted.unit, corpus=wanted.corpus, seed=wanted.seed)
        known = evidence.cohorts.get(role)
        evidence = replace(
            evidence,
            models={**evidence.models, **train(cohorts, evidence.corpora[role])},
            cohorts={**evidence.cohorts, role: cohorts if known is None else known.join(cohorts)},
        )
    return evidence


def _score_missing_answers(audit: str, evidence: Evidence, needs: Needs, score: ScoreCorpus) -> Evidence:
    """The evidence of a round with the answers that were missing, scored in a deterministic order."""
    new = sorted(needs.score - evidence.answers.keys())
    if not new:
        return evidence
    missing = {model for model, _ in new} - evidence.models.keys()
    missing |= {corpus for _, corpus in new} - evidence.corpora.keys()
    if missing:
        raise _build_missing_error(audit, missing, needs)
    found = {(model, corpus): score(evidence.models[model], evidence.corpora[corpus]) for model, corpus in new}
    return replace(evidence, answers={**evidence.answers, **found})


def _check_roles_given(audit: Audit, needs: Needs, roles: Collection[str], *, members: bool) -> None:
    """Before round 0: refuse if a role is not given, unless known members and non-members replace it."""
    missing = needs.given.difference(roles, needs.unless_members if members else ())
    if missing:
        raise _build_missing_error(audit.name, missing, needs)


def _build_missing_error(audit: str, roles: Collection[str], needs: Needs) -> PlanError:
    """The error about what a round needs and is not given: models, corpora and files."""
    ordered = sorted(roles, key=lambda role: (role != TARGET, role != AUDITED, role))
    do = needs.advice or f"Give {_enumerate_roles(map(_describe_role_option, ordered))}."
    if needs.unless_members.issuperset(roles):
        do = f"{do[:-1]}, or name the members and non-members: --members with --non-members or --others non-members."
    return PlanError(
        f"The {audit} audit needs {_enumerate_roles(_NAMES.get(role, role) for role in ordered)}.",
        do=do,
        code=f"missing_{ordered[0].replace('-', '_')}" if len(ordered) == 1 else "missing_roles",
    )


_NAMES = {TARGET: "a model", AUDITED: "a corpus"}


def _describe_role_option(role: str) -> str:
    """How a role that a round needs is given on the command line and in Python."""
    return {TARGET: "MODEL", AUDITED: "CORPUS"}.get(role, f"--{role} (in Python {role.replace('-', '_')}=)")


def _enumerate_roles(names: Iterable[str]) -> str:
    """Names of roles that a round needs as a sentence lists them.

    >>> _enumerate_roles(["a model"]), _enumerate_roles(["a model", "a corpus", "controls"])
    ('a model', 'a model, a corpus and controls')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
