"""What was audited, as far as a run folder tells: names from the plan, digests from the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

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


def build_subject(folder: RunFolder, results: Mapping[str, Result]) -> dict[str, str]:
    """What was audited: each thing by its name."""
    traces = [result.provenance for result in results.values() if result.provenance is not None]
    plan = _read_plan(folder)
    own = {
        audit: _get_own_sections(settings)
        for audit, settings in _get_section(plan.get("audits")).items()
        if audit in results
    }
    subject = _collect_about(results)
    subject |= {f"{role} model": name for role, name in _list_names(plan.get("models")).items()}
    subject |= {
        f"{role} model of {audit}": name for audit in own for role, name in _list_names(own[audit]["models"]).items()
    }
    subject |= {"digest of the target model": _get_shared_digest({trace.model for trace in traces if trace.model})}
    subject |= {f"{role} corpus": name for role, name in _list_names(plan.get("corpora")).items()}
    subject |= {
        f"{role} corpus of {audit}": name for audit in own for role, name in _list_names(own[audit]["corpora"]).items()
    }
    subject |= {"digest of the corpus": _get_shared_digest({trace.corpus for trace in traces if trace.corpus})}
    subject |= {"audits": ", ".join(results), "made with": _list_versions(results)}
    return {name: words for name, words in subject.items() if words}


def _collect_about(results: Mapping[str, Result]) -> dict[str, str]:
    """The audited system, for whom and when, as the results tell; all answers, where they differ."""
    stated = [result.about for result in results.values() if result.about is not None]
    given = {words: [getattr(each, field) for each in stated] for field, words in ABOUT.items()}
    return {words: "; ".join(dict.fromkeys(filter(None, values))) for words, values in given.items()}


def _get_shared_digest(digests: set[str]) -> str:
    """The digest that all answers share; where they have several, each answer names its own."""
    return next(iter(digests)) if len(digests) == 1 else ""


def _list_versions(results: Mapping[str, Result]) -> str:
    """The versions of Recollect that made the results."""
    versions = {result.provenance.recollect for result in results.values() if result.provenance is not None}
    return ", ".join(f"Recollect {version}" for version in sorted(versions))


def _read_plan(folder: RunFolder) -> dict[str, Any]:
    """The last plan of the run folder; a report can do without it."""
    try:
        plan = yaml.safe_load(folder.plan.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return plan if isinstance(plan, dict) else {}


def _get_section(section: Any) -> dict[Any, Any]:
    """A section of a plan; a damaged one is empty."""
    return section if isinstance(section, dict) else {}


def _get_own_sections(settings: Any) -> dict[str, Any]:
    """The models and corpora that a plan gives to one audit alone."""
    given = _get_section(_get_section(settings).get("with"))
    return {section: given.get(section) for section in ("models", "corpora")}


def _list_names(section: Any) -> dict[str, str]:
    """What a plan calls its models or corpora, by their parts."""
    found = {role: _get_name(each) for role, each in _get_section(section).items()}
    return {str(role): str(name) for role, name in found.items() if name is not None}


def _get_name(entry: Any) -> Any:
    """What one model or corpus is called: by a plan file, by the plan of one audit, or as an object."""
    if not isinstance(entry, dict):
        return entry
    return next((entry[key] for key in ("ref", "model", "corpus", "object") if key in entry), None)
