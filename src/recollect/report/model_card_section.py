"""A section for the model card, and `model-index` metadata for a hub: aggregates only, no person, no text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from recollect.documents import load_yaml
from recollect.errors import PlanError
from recollect.files import write_text
from recollect.report.markdown import escape_text
from recollect.report.presentations import find_presentation
from recollect.report.questions import choose_light
from recollect.results.result import Result
from recollect.results.summary_rows import build_summary_rows, title_name
from recollect.version import __version__

START: Final = "<!-- recollect: begin -->"
END: Final = "<!-- recollect: end -->"
MAX_NUMBERS: Final = 5
"""Numbers of each audit that a card shows."""
_SECTION = re.compile(f"{re.escape(START)}.*?{re.escape(END)}\n?", re.DOTALL)
_HEAD = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)


def render_card_section(results: Iterable[Result]) -> str:
    """Outcome, severity and key numbers of each audit, as Markdown."""
    lines = [START, "## Memorisation audit", "", "| audit | outcome | severity | key numbers |", "|---|---|---|---|"]
    for result in results:
        shown = [f"{row.title}: {row.both}" for row in build_summary_rows(_select_key_findings(result))]
        light = choose_light(result, find_presentation(result.audit)).words
        cells = [title_name(result.audit), light, result.severity or "–", "; ".join(shown) or "–"]
        lines.append(f"| {' | '.join(map(escape_text, cells))} |")
    lines += ["", f"Made with Recollect {__version__}. “Not found” means that these tests found nothing."]
    return "\n".join([*lines, END, ""])


def build_model_index(results: Iterable[Result], name: str) -> list[dict[str, Any]]:
    """The `model-index` of a card: the key numbers of each audit as metrics, in the form that the Hub reads.

    Args:
        results: Of one or more audits.
        name: The name of the model.
    """
    return [{"name": name, "results": [_build_model_index_entry(result) for result in results]}]


def update_model_card(results: Iterable[Result], file: Path, *, name: str | None = None) -> Path:
    """Put the section and the metadata into a model card; what else is in it stays, and an earlier section is replaced.

    Args:
        results: Of one or more audits.
        file: The card, `README.md`; it is made if there is none.
        name: The name of the model; that of the card's folder by default.

    Raises:
        PlanError: The card's metadata cannot be read.
    """
    many = list(results)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    head = _HEAD.match(text)
    metadata = load_yaml(head[1], name=str(file)) if head else {}
    if not isinstance(metadata, dict):
        raise PlanError(
            f"The metadata of {str(file)!r} are no YAML mapping.", do="Repair its head.", code="invalid_card"
        )
    body = text[head.end() :] if head else text
    index = build_model_index(many, name or file.resolve().parent.name)
    metadata["model-index"] = _merge_model_index(metadata.get("model-index"), index)
    section = render_card_section(many)
    body = _SECTION.sub(lambda _: section, body) if _SECTION.search(body) else f"{body.rstrip()}\n\n{section}".lstrip()
    dumped = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)
    write_text(file, f"---\n{dumped}---\n{body}")
    return file


def _select_key_findings(result: Result) -> Result:
    """The result with the key numbers for a model card."""
    keys = find_presentation(result.audit).key_findings
    ordered = sorted(result.findings, key=lambda finding: finding.name not in keys)
    return result.replace(findings=tuple(ordered[:MAX_NUMBERS]))


def _build_model_index_entry(result: Result) -> dict[str, Any]:
    """One audit as a result of a model card's index."""
    metrics = [
        {"type": each.name, "value": each.value, "name": title_name(each.name), "verified": False}
        for each in _select_key_findings(result).findings
    ]
    outcome = {"type": "outcome", "value": result.outcome, "name": "Outcome", "verified": False}
    return {
        "task": {"type": f"recollect-{result.audit}", "name": f"{title_name(result.audit)} (memorisation audit)"},
        "dataset": {"type": "private", "name": "audited data"},
        "metrics": [outcome, *metrics],
    }


def _merge_model_index(old: Any, new: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The new entries of a model card's index in place of earlier ones of ours; the results of others stay."""
    kept = old if isinstance(old, list) else []
    merged = list[Any]()
    ours = list(new[0]["results"])
    for each in kept:
        results = each.get("results", []) if isinstance(each, dict) else []
        others = [result for result in results if not _is_our_index_entry(result)]
        if isinstance(each, dict) and each.get("name") == new[0]["name"]:
            merged.append({**each, "results": [*others, *ours]})
            ours = []
        elif others or not results:
            merged.append({**each, "results": others} if isinstance(each, dict) else each)
    return [*merged, {**new[0], "results": ours}] if ours else merged


def _is_our_index_entry(result: Any) -> bool:
    """Whether an entry of a model card's index was made here."""
    task = result.get("task") if isinstance(result, dict) else None
    return isinstance(task, dict) and str(task.get("type", "")).startswith("recollect-")
