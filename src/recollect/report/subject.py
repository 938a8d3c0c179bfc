"""What was audited, as far as a run folder tells: names from the plan, digests from the results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import yaml

from recollect.documents import load_yaml
from recollect.errors import PlanError
from recollect.results.folders import RunFolder
from recollect.results.result import Result

ABOUT: Final = {
    "system": "system",
    "version": "version of the system",
    "who": "audited by",
    "purpose": "purpose",
    "date": "date",
}
"""What is known about an audit, in words, by its field."""
MAX_NAMES: Final = 3
"""Models of one role that are named, such as shadow models."""
_NUMBER = re.compile(r"-[0-9]+$")
_PATH = re.compile(r"(?<![^:+])/(?!/)[^:+]+")
"""A path from the root, alone or in the name of a model: recorded:/a/b, /base+/adapter."""


def build_subject(folder: RunFolder, results: Mapping[str, Result]) -> dict[str, str]:
    """What was audited: each thing once, by a short name. The plan of the run folder has the whole paths."""
    traces = [result.provenance for result in results.values() if result.provenance is not None]
    plan = _read_subject_plan(folder)
    subject = _collect_about(results)
    subject |= _name_roles(plan, results, section="models", kind="model")
    subject |= {"digest of the target model": _get_shared_digest({trace.model for trace in traces if trace.model})}
    subject |= _name_roles(plan, results, section="corpora", kind="corpus")
    subject |= {"digest of the corpus": _get_shared_digest({trace.corpus for trace in traces if trace.corpus})}
    subject |= {"audits": ", ".join(results), "made with": _list_versions(results)}
    return {name: words for name, words in subject.items() if words}


def _name_roles(plan: Mapping[str, Any], audits: Iterable[str], *, section: str, kind: str) -> dict[str, str]:
    """What has each role; where audits were given different things in one role, whose each is."""
    shared, settings = _list_subject_names(plan.get(section)), _get_subject_section(plan.get("audits"))
    planned = [audit for audit in audits if audit in settings]
    given = {
        audit: shared
        | _list_subject_names(_get_subject_section(_get_subject_section(settings[audit]).get("with")).get(section))
        for audit in planned
    }
    short = _shorten_subject_names(
        name for names in (shared, *given.values()) for each in names.values() for name in each
    )
    found: dict[str, str] = {}
    for role in dict.fromkeys(role for names in (shared, *given.values()) for role in names):
        users: dict[tuple[str, ...], list[str]] = {}
        for audit in planned:
            if role in given[audit]:
                users.setdefault(given[audit][role], []).append(audit)
        usual = shared[role] if role in shared else max(users, key=lambda names: len(users[names]))
        found[f"{role} {kind}"] = _join_subject_names([short[name] for name in usual])
        for names in (each for each in users if each != usual):
            found[f"{role} {kind} of {', '.join(users[names])}"] = _join_subject_names([short[name] for name in names])
    return found


def _shorten_subject_names(names: Iterable[str]) -> dict[str, str]:
    """Names of what was audited without the folders that nobody needs to tell them apart.

    >>> _shorten_subject_names(["/data/old/posts.jsonl", "/data/new/posts.jsonl", "hf:gpt2"])
    {'/data/old/posts.jsonl': 'old/posts.jsonl', '/data/new/posts.jsonl': 'new/posts.jsonl', 'hf:gpt2': 'hf:gpt2'}
    """
    every = list(dict.fromkeys(names))
    short = {name: name for name in every}
    for steps in range(1, 2 + max((name.count("/") for name in every), default=0)):
        short = {name: _PATH.sub(partial(_keep_last_steps, steps=steps), name) for name in every}
        if len(set(short.values())) == len(every):
            break
    return short


def _keep_last_steps(path: re.Match[str], *, steps: int) -> str:
    """The last steps of the path of what was audited."""
    return "/".join(path[0].split("/")[-steps:])


def _join_subject_names(names: Sequence[str]) -> str:
    """Some names of what was audited in a line; of many the first."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _collect_about(results: Mapping[str, Result]) -> dict[str, str]:
    """The audited system, for whom and when, as the results tell; all answers, where they differ."""
    stated = [result.about for result in results.values() if result.about is not None]
    given = {words: [getattr(each, field) for each in stated] for field, words in ABOUT.items()}
    return {words: "; ".join(dict.fromkeys(filter(None, values))) for words, values in given.items()}


def _get_shared_digest(digests: set[str]) -> str:
    """The digest of what was audited that all answers share; where they have several, each answer names its own."""
    return next(iter(digests)) if len(digests) == 1 else ""


def _list_versions(results: Mapping[str, Result]) -> str:
    """The versions of Recollect that audited the subject."""
    versions = {result.provenance.recollect for result in results.values() if result.provenance is not None}
    return ", ".join(f"Recollect {version}" for version in sorted(versions))


def _read_subject_plan(folder: RunFolder) -> dict[str, Any]:
    """What was audited by the last plan of the run folder; a report can do without it."""
    try:
        plan = load_yaml(folder.plan.read_text(encoding="utf-8"), name="The plan")
    except (OSError, ValueError, RecursionError, PlanError, yaml.YAMLError):
        return {}
    return plan if isinstance(plan, dict) else {}


def _get_subject_section(section: Any) -> dict[Any, Any]:
    """A section of a plan; a damaged one is empty."""
    return section if isinstance(section, dict) else {}


def _list_subject_names(section: Any) -> dict[str, tuple[str, ...]]:
    """What a plan calls its models or corpora, by their roles; numbered ones have one role together."""
    found: dict[str, tuple[str, ...]] = {}
    for role, each in _get_subject_section(section).items():
        name, head = _get_subject_name(each), _NUMBER.sub("", str(role))
        found |= {} if name is None else {head: (*found.get(head, ()), str(name))}
    return found


def _get_subject_name(entry: Any) -> Any:
    """What one model or corpus is called: by a plan file, by the plan of one audit, or as an object."""
    if not isinstance(entry, dict):
        return entry
    return next((entry[key] for key in ("ref", "model", "corpus", "object") if key in entry), None)
