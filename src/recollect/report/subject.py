"""What was audited, as far as a run folder tells: names from the plan, digests from the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from recollect.results.folders import RunFolder
from recollect.results.result import Result


def subject_of(folder: RunFolder, results: Mapping[str, Result]) -> dict[str, str]:
    """What was audited: each thing by its name."""
    traces = [result.provenance for result in results.values() if result.provenance is not None]
    plan = _plan(folder)
    said = {f"{part} model": name for part, name in _names(plan.get("models")).items()}
    said |= {"digest of the target model": ", ".join(sorted({trace.model for trace in traces if trace.model}))}
    said |= {f"{part} corpus": name for part, name in _names(plan.get("corpora")).items()}
    said |= {"digest of the corpus": ", ".join(sorted({trace.corpus for trace in traces if trace.corpus}))}
    said |= {"audits": ", ".join(results), "made with": _versions(results)}
    return {name: words for name, words in said.items() if words}


def _versions(results: Mapping[str, Result]) -> str:
    """The versions of Recollect that made the results."""
    versions = {result.provenance.recollect for result in results.values() if result.provenance is not None}
    return ", ".join(f"Recollect {version}" for version in sorted(versions))


def _plan(folder: RunFolder) -> dict[str, Any]:
    """The last plan of the run folder; a report can do without it."""
    try:
        plan = yaml.safe_load(folder.plan.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return plan if isinstance(plan, dict) else {}


def _names(parts: Any) -> dict[str, str]:
    """What a plan calls its models or corpora, by their parts."""
    named = parts.items() if isinstance(parts, dict) else ()
    found = {part: each.get("ref", each.get("object")) if isinstance(each, dict) else each for part, each in named}
    return {str(part): str(name) for part, name in found.items() if name is not None}
