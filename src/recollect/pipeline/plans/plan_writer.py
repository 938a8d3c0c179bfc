"""The plan file as a run folder keeps it: what all audits share is at the top, and what differs under each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from recollect.pipeline.plans.plan import OBJECT, OWN, Plan, collect_settings, digest_cohorts, to_plain
from recollect.pipeline.plans.refs import CorpusRef, MembersRef, ModelRef, RecipeRef, resolve_ref_name
from recollect.recipes.recipe import Recipe
from recollect.signals.evidence import AUDITED

BY_ROLE = ("models", "corpora", "files")
"""The sections whose keys are roles, each of which an audit may be given otherwise than the others."""
OF_CORPUS = ("cohorts", "members", "non_members", "others")
"""What is known of the audited corpus; it is at the top as a whole, and where all audits have the same corpus."""


def write_plan(plans: Sequence[Plan], *, out: Path | None = None) -> str:
    """Plans of several audits as one file, which `read_plan` reads again: absolute paths, all settings.

    What was in memory only is named with its digest; such a plan is refused by `read_plan`.
    """
    first = plans[0]
    inputs = {plan.audit.name: _describe_inputs(plan) for plan in plans}
    shared = _find_shared_inputs(list(inputs.values()))
    own = {name: _subtract_shared_inputs(given, shared) for name, given in inputs.items()}
    document = {
        **shared,
        "audits": {
            plan.audit.name: {**collect_settings(plan.audit), **_drop_empty_sections({OWN: own[plan.audit.name]})}
            for plan in plans
        },
        "limits": {plan.audit.name: [str(limit) for limit in plan.limits] for plan in plans if plan.limits},
        "seed": first.seed,
        "work": str(first.work.absolute()),
        "work_limit_gb": first.work_limit_gb,
        "out": None if out is None else str(out.absolute()),
        "workers": first.workers,
        "threads": first.threads,
        "backend": first.backend.model_dump(exclude_none=True),
        "about": None if first.about is None else first.about.model_dump(exclude_none=True),
    }
    return yaml.safe_dump(to_plain(_drop_empty_sections(document)), sort_keys=False, allow_unicode=True)


def _find_shared_inputs(inputs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """For writing a plan: what is given to all audits or, where it differs, to most of them."""
    first = inputs[0]
    shared: dict[str, Any] = {
        section: {
            role: _find_usual_input([each.get(section, {}).get(role) for each in inputs]) for role in first[section]
        }
        for section in BY_ROLE
        if section in first
    }
    shared = {section: _drop_empty_sections(roles) for section, roles in shared.items()}
    if _are_inputs_alike([each.get("corpora", {}).get(AUDITED) for each in inputs]) and _are_inputs_alike(
        [{section: each.get(section) for section in OF_CORPUS} for each in inputs]
    ):
        shared |= {section: first.get(section) for section in OF_CORPUS}
    shared["recipe"] = _find_usual_input([each.get("recipe") for each in inputs])
    return _drop_empty_sections(shared)


def _are_inputs_alike(values: Sequence[Any]) -> bool:
    """Whether all audits of a plan are given the same."""
    return all(value == values[0] for value in values)


def _find_usual_input(values: Sequence[Any]) -> Any:
    """What most audits of a plan are given, of equally common ones the first; None if somebody has none."""
    return None if None in values else max(values, key=values.count)


def _subtract_shared_inputs(given: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """What is given to one audit of a plan alone."""
    own: dict[str, Any] = {}
    for section, value in given.items():
        top = shared.get(section, {})
        if section in BY_ROLE:
            own[section] = {role: each for role, each in value.items() if top.get(role) != each}
        elif value != top:
            own[section] = value
    return _drop_empty_sections(own)


def _drop_empty_sections(sections: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a plan that say something."""
    return {key: value for key, value in sections.items() if value not in (None, {})}


def _describe_inputs(plan: Plan) -> dict[str, Any]:
    """What is given to one audit, as a plan file says it."""
    members = plan.members
    known: dict[str, Any] = {}
    if isinstance(members, MembersRef):
        known = members.resolve_paths(Path.cwd()).model_dump(exclude_defaults=True)
    elif members is not None:
        known = {"members": {OBJECT: "members", "digest": members.digest}}
    given = {
        "models": {role: _describe_source(source) for role, source in plan.models.items()},
        "corpora": {role: _describe_source(source) for role, source in plan.corpora.items()},
        "cohorts": {role: _describe_source(source) for role, source in plan.cohorts.items()},
        **known,
        "files": {role: str(path.absolute()) for role, path in plan.files.items()},
        "recipe": None if plan.recipe is None else _describe_source(plan.recipe),
    }
    return _drop_empty_sections(given)


def _describe_source(source: Any) -> Any:
    """A model, corpus, cohorts or recipe as a plan file names it; an object that was never named, by its digest."""
    if isinstance(source, Recipe):
        return RecipeRef.of(source).model_dump(exclude_defaults=True)
    if isinstance(source, str):
        return resolve_ref_name(source, Path.cwd())
    if isinstance(source, Path):
        return str(source.absolute())
    if isinstance(source, ModelRef | CorpusRef | RecipeRef):
        written = source.resolve_paths(Path.cwd()).model_dump(exclude_defaults=True)
        name = {"ModelRef": "model", "CorpusRef": "corpus", "RecipeRef": "recipe"}[type(source).__name__]
        return written[name] if list(written) == [name] else written
    address = source.digest if hasattr(source, "digest") else digest_cohorts(source)
    return {OBJECT: getattr(source, "name", "cohorts"), "digest": address}
