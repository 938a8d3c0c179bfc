"""What was audited, as far as a run folder tells: names from the plan, all else from the results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import yaml

from recollect import labels
from recollect.documents import load_yaml
from recollect.errors import PlanError
from recollect.results.result import Result
from recollect.results.run_folder import RunFolder

ABOUT: Final = {
    "date": "date",
    "system": "system",
    "version": "version of the system",
    "who": "audited by",
    "purpose": "purpose",
}
"""What is known about an audit, in words, by its field."""
NOT_STATED: Final = "not stated"
NO_NAME: Final = "model without a name"
MAX_NAMES: Final = 3
"""Models of one role that are named, such as shadow models."""
_NUMBER = re.compile(r"-[0-9]+$")
_PATH = re.compile(r"(?<![^:+])/(?!/)[^:+]+")
"""A path from the root, alone or in the name of a model: recorded:/a/b, /base+/adapter."""


@dataclass(frozen=True, kw_only=True)
class AuditedModel:
    """One model that was audited."""

    name: str
    audits: tuple[str, ...]
    """Which audits examined it."""
    corpora: str
    """The audited data, by name."""
    digest: str


def build_subject(results: Mapping[str, Result]) -> dict[str, str]:
    """When, by whom and what for; what nobody stated is marked as not stated."""
    subject = {name: words or NOT_STATED for name, words in _collect_subject_about(results).items()}
    if subject[ABOUT["system"]] != NOT_STATED and subject[ABOUT["version"]] == NOT_STATED:
        del subject[ABOUT["version"]]  # it may be part of the name: --system 'shop-bot 2.1'
    return subject | {"made with": _list_versions(results) or NOT_STATED}


def list_audited_models(folder: RunFolder, results: Mapping[str, Result]) -> tuple[AuditedModel, ...]:
    """The subjects of a report: one line for each audited model, with its audits and their data."""
    plan = _read_subject_plan(folder)
    names = {kind: _name_subject_by_audit(plan, results, section=kind) for kind in ("models", "corpora")}
    found: dict[tuple[str, str], list[str]] = {}
    for audit, result in results.items():
        trace = result.provenance
        digest = "" if trace is None else trace.model or ""
        name = _get_recorded_name(result) or names["models"].get(audit, {}).get(labels.ROLE_TARGET) or NO_NAME
        found.setdefault((name, digest), []).append(audit)
    return tuple(
        AuditedModel(
            name=name,
            audits=tuple(audits),
            corpora=", ".join(
                dict.fromkeys(filter(None, (names["corpora"].get(a, {}).get(labels.ROLE_AUDITED) for a in audits)))
            ),
            digest=digest,
        )
        for (name, digest), audits in found.items()
    )


def _get_recorded_name(result: Result) -> str:
    """The subject's name in the result itself: what it calls its target; empty if it does not."""
    facts = None if result.provenance is None else result.provenance.models.get(labels.ROLE_TARGET)
    return "" if facts is None else shorten_names([facts.name])[facts.name]


def _name_subject_by_audit(
    plan: Mapping[str, Any], audits: Iterable[str], *, section: str
) -> dict[str, dict[str, str]]:
    """The subjects that each audit was given, by role and short name."""
    shared, settings = _list_subject_names(plan.get(section)), _get_subject_section(plan.get("audits"))
    given = {
        audit: shared
        | _list_subject_names(_get_subject_section(_get_subject_section(settings.get(audit)).get("with")).get(section))
        for audit in audits
        if audit in settings or not settings
    }
    short = shorten_names(name for names in given.values() for each in names.values() for name in each)
    return {
        audit: {role: _join_subject_names([short[name] for name in each]) for role, each in names.items()}
        for audit, names in given.items()
    }


def shorten_names(names: Iterable[str]) -> dict[str, str]:
    """Names of what was audited without the folders that nobody needs to tell them apart.

    >>> shorten_names(["/data/old/posts.jsonl", "/data/new/posts.jsonl", "hf:gpt2"])
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
    """The last steps of a subject's path."""
    return "/".join(path[0].split("/")[-steps:])


def _join_subject_names(names: Sequence[str]) -> str:
    """Some names of what was audited in a line; of many the first."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _collect_subject_about(results: Mapping[str, Result]) -> dict[str, str]:
    """The subject of the report: the audited system, for whom and when, as the results tell."""
    stated = [result.about for result in results.values() if result.about is not None]
    given = {words: [getattr(each, field) for each in stated] for field, words in ABOUT.items()}
    if not any(given["date"]):
        given["date"] = sorted({r.provenance.date or "" for r in results.values() if r.provenance is not None})
    return {words: "; ".join(dict.fromkeys(filter(None, values))) for words, values in given.items()}


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
