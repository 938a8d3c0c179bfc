"""What a report says, before it is HTML or Markdown: questions, answers, what was not tested, the annex."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import yaml

from recollect.errors import StoreError
from recollect.report.annex import Evidence, evidence_of
from recollect.report.figures.figure import Figure
from recollect.report.questions import PARTS, QUESTIONS, Light, light_of
from recollect.report.tables import Table, table_of
from recollect.report.views import GENERIC, VIEWS
from recollect.results.folders import RunFolder
from recollect.results.result import Result
from recollect.results.summary import Row, summary_rows


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one audit found, ready to be shown."""

    result: Result
    light: Light
    rows: tuple[Row, ...]
    """One per finding, in its order."""
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    unreadable: tuple[str, ...]
    """Tables that the run folder ought to hold and does not."""

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the audit in words."""
        return {name.replace("_", " "): _plain(value) for name, value in self.result.settings.items()}

    @property
    def origin(self) -> dict[str, str]:
        """What the result came from, in words."""
        trace = {} if self.result.provenance is None else self.result.provenance.model_dump(mode="json")
        versions, digests = trace.pop("versions", {}), trace.pop("digests", {})
        flat = trace | versions | {f"digest of {part}": digest for part, digest in digests.items()}
        return {name: _plain(value) for name, value in flat.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question, and the answers to it; none, if it was not asked."""

    question: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that a report says."""

    asked: tuple[Asked, ...]
    """The five questions, then those of plug-ins."""
    subject: dict[str, str]
    """What was audited."""
    warnings: tuple[str, ...]
    """What a reader must know before reading on."""
    untested: tuple[str, ...]
    annex: tuple[Evidence, ...]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """All answers, in the order of their questions."""
        return tuple(answer for each in self.asked for answer in each.answers)


def gathered(folder: RunFolder, *, show_text: bool = False) -> Report:
    """The report of a run folder.

    Raises:
        StoreError: The folder holds no results, or a result is damaged or newer.
    """
    results = folder.read_results()
    if not results:
        raise StoreError(f"{str(folder.path)!r} holds no results.", do="Run an audit with --out first.")
    answers = {name: _answer(folder, result, show_text=show_text) for name, result in results.items()}
    asked = _asked(answers)
    return Report(
        asked=asked,
        subject=_subject(folder, results),
        warnings=_warnings(results),
        untested=_untested(asked, results),
        annex=tuple(evidence_of(results)),
    )


def _answer(folder: RunFolder, result: Result, *, show_text: bool) -> Answer:
    """One result with its figures and tables."""
    view, held, unreadable = VIEWS.get(result.audit, GENERIC), dict[str, pa.Table](), []
    for name in result.tables:
        try:
            held[name] = folder.read_table(result, name)
        except StoreError as error:
            unreadable.append(error.found)
    # The tables of a run that did not show text are masked already; a mask of a mask would tell a wrong length.
    as_it_stands = show_text or result.settings.get("show_text") is False
    tables = [
        table_of(name, table, view.tables.get(name), place=result.tables[name], show_text=as_it_stands)
        for name, table in held.items()
        if name not in view.drawn
    ]
    return Answer(
        result=result,
        light=light_of(result),
        rows=tuple(summary_rows(result)),
        figures=tuple(view.figures(result, held)),
        tables=tuple(tables),
        unreadable=tuple(unreadable),
    )


def _plain(value: Any) -> str:
    """A setting as people write it."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _asked(answers: Mapping[str, Answer]) -> tuple[Asked, ...]:
    """The five questions with their answers, then all other answers with their own questions."""
    ours = [
        Asked(
            question=question,
            answers=tuple(answer for name, answer in answers.items() if PARTS.get(name, name) == audit),
        )
        for audit, question in QUESTIONS.items()
    ]
    others = [answer for name, answer in answers.items() if PARTS.get(name, name) not in QUESTIONS]
    return (*ours, *(Asked(question=answer.result.question, answers=(answer,)) for answer in others))


def _subject(folder: RunFolder, results: Mapping[str, Result]) -> dict[str, str]:
    """What was audited, as far as the run folder tells: names from the plan, digests from the results."""
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


def _warnings(results: Mapping[str, Result]) -> tuple[str, ...]:
    """What a reader must know before reading on."""
    models = {result.provenance.model for result in results.values() if result.provenance and result.provenance.model}
    said = []
    if len(models) > 1:
        said.append(
            f"The results in this folder are about {len(models)} different models, and the names are those of the "
            "last run. Read each answer with the digests beneath it."
        )
    said += [f"{name}: {failed.error}" for name, result in results.items() for failed in result.failed]
    return tuple(said)


def _untested(asked: tuple[Asked, ...], results: Mapping[str, Result]) -> tuple[str, ...]:
    """What was not tested: limits of the audits, what was skipped, questions nobody asked; each once."""
    said = [limit for result in results.values() for limit in result.limits]
    for name, result in results.items():
        said += [f"Skipped: {each.finding or name}. {each.reason}" for each in result.skipped]
    said += [f"Not asked: {each.question}" for each in asked if not each.answers]
    return tuple(dict.fromkeys(said))
