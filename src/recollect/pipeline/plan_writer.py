"""The plan file as a run folder keeps it: what all audits share stands at the top, and what differs under each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from recollect.pipeline.plan import OBJECT, OWN, Plan, collect_settings, digest_cohorts, to_plain
from recollect.pipeline.refs import CorpusRef, MembersRef, ModelRef, RecipeRef, resolve_name
from recollect.recipes.recipe import Recipe
from recollect.signals.evidence import AUDITED

BY_ROLE = ("models", "corpora", "cohorts", "files")
"""The sections whose keys are roles."""
OF_CORPORA = ("cohorts", "members", "non_members", "others")
"""What tells of the audited corpus: an audit that has another one does not read it from the top of the file."""


def write_plan(plans: Sequence[Plan], *, out: Path | None = None) -> str:
    """Plans of several audits as one file, which `read_plan` reads again: absolute paths, all settings.

    What was in memory only is named with its digest; such a plan is refused by `read_plan`.
    """
    first = plans[0]
    inputs = {plan.audit.name: _describe_inputs(plan) for plan in plans}
    shared = _find_shared(list(inputs.values()))
    own = {name: _subtract(given, shared) for name, given in inputs.items()}
    document = {
        **shared,
        "audits": {
            plan.audit.name: {**collect_settings(plan.audit), **_drop_empty({OWN: own[plan.audit.name]})}
            for plan in plans
        },
        "limits": {plan.audit.name: [str(limit) for limit in plan.limits] for plan in plans if plan.limits},
        "seed": first.seed,
        "work": str(first.work.absolute()),
        "out": None if out is None else str(out.absolute()),
        "workers": first.workers,
        "threads": first.threads,
        "about": None if first.about is None else first.about.model_dump(exclude_none=True),
    }
    return yaml.safe_dump(to_plain(_drop_empty(document)), sort_keys=False, allow_unicode=True)


def _find_shared(inputs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is given to all audits alike."""
    first, *others = inputs
    shared: dict[str, Any] = {}
    for section, value in first.items():
        if section in BY_ROLE:
            alike = {
                role: each
                for role, each in value.items()
                if all(other.get(section, {}).get(role) == each for other in others)
            }
            shared |= _drop_empty({section: alike})
        elif all(other.get(section) == value for other in others):
            shared[section] = value
    differ = any(AUDITED in each.get("corpora", {}) for each in inputs) and AUDITED not in shared.get("corpora", {})
    return {section: value for section, value in shared.items() if not (differ and section in OF_CORPORA)}


def _subtract(given: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """What is given to one audit alone."""
    own: dict[str, Any] = {}
    for section, value in given.items():
        if section in BY_ROLE:
            own[section] = {role: each for role, each in value.items() if role not in shared.get(section, {})}
        elif section not in shared:
            own[section] = value
    return _drop_empty(own)


def _drop_empty(sections: Mapping[str, Any]) -> dict[str, Any]:
    """The sections that say something."""
    return {key: value for key, value in sections.items() if value not in (None, {})}


def _describe_inputs(plan: Plan) -> dict[str, Any]:
    """What is given to one audit, as a file says it."""
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
    return _drop_empty(given)


def _describe_source(source: Any) -> Any:
    """A model, corpus, cohorts or recipe as a file names it; an object that was never named, by its digest."""
    if isinstance(source, Recipe):
        return RecipeRef.of(source).model_dump(exclude_defaults=True)
    if isinstance(source, str):
        return resolve_name(source, Path.cwd())
    if isinstance(source, Path):
        return str(source.absolute())
    if isinstance(source, ModelRef | CorpusRef | RecipeRef):
        written = source.resolve_paths(Path.cwd()).model_dump(exclude_defaults=True)
        name = {"ModelRef": "model", "CorpusRef": "corpus", "RecipeRef": "recipe"}[type(source).__name__]
        return written[name] if list(written) == [name] else written
    address = source.digest if hasattr(source, "digest") else digest_cohorts(source)
    return {OBJECT: getattr(source, "name", "cohorts"), "digest": address}
