"""What a report says, before it is HTML or Markdown: questions, answers, what was not tested, the annex."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from recollect.errors import StoreError
from recollect.report.annex import MATTERS, AnnexEvidence, build_annex
from recollect.report.audit_answer import Answer, read_answer
from recollect.report.questions import FIVE, Light, get_five_questions
from recollect.report.remarks import LIMITS, describe_limit
from recollect.report.subject import AuditedModel, build_subject, list_audited_models
from recollect.report.words import Naming, get_own_id
from recollect.results.advice import STEPS, NextStep
from recollect.results.result import LimitCheck, Result
from recollect.results.run_folder import RunFolder
from recollect.results.summary_rows import group_withheld, title_name

FOUND: Final = "evidence of memorisation"
HEADLINE_WORDS: Final = {"red": FOUND, "green": "no evidence", "amber": "inconclusive", "grey": "not examined"}
"""What a headline says of the questions with each light, the gravest first."""


@dataclass(frozen=True, kw_only=True)
class QuestionAnswers:
    """One question, and the answers to it; none, if it was not tested."""

    question: str
    answers: tuple[Answer, ...]

    @property
    def colour(self) -> str:
        """The light of the gravest answer; grey if there is none."""
        return min((answer.light.colour for answer in self.answers), key=[*HEADLINE_WORDS].index, default="grey")


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that a report says."""

    questions: tuple[QuestionAnswers, ...]
    """The five questions, then those of plug-ins."""
    subject: dict[str, str]
    """When, by whom and what for."""
    models: tuple[AuditedModel, ...]
    """Every model that was audited."""
    limits: tuple[tuple[str, LimitCheck, Light], ...]
    """The limits that were set: of which audit, what was checked, and whether it was kept."""
    steps: dict[str, NextStep]
    """All that is suggested, by name, the most urgent first."""
    warnings: tuple[str, ...]
    """What a reader must know before reading on."""
    untested: tuple[str, ...]
    annex: tuple[AnnexEvidence, ...]

    @property
    def headline(self) -> str:
        """In how many of the questions that were examined evidence was found, and what became of the others.

        Questions of plug-ins count like ours; the gravest answer to a question counts.
        """
        lights = [each.colour for each in self.questions]
        examined = [colour for colour in lights if colour != "grey"]
        sentences = [_describe_examined(examined) if examined else "No question was examined."]
        if missing := lights[: len(FIVE)].count("grey"):
            sentences.append(f"Not examined: {missing} of the {len(FIVE)} built-in questions.")
        if undone := lights[len(FIVE) :].count("grey"):
            sentences.append(f"Not done: {undone} question{'s' * (undone > 1)} of plug-ins.")
        return " ".join(sentences)

    @property
    def severity(self) -> str:
        """The highest severity of all answers; empty if none has one."""
        grades = [answer.result.severity for answer in self.answers]
        return next((grade for grade in ("high", "medium", "low", "none") if grade in grades), "")

    @property
    def answers(self) -> tuple[Answer, ...]:
        """All answers, in the order of their questions."""
        return tuple(answer for each in self.questions for answer in each.answers)


def build_report(
    folder: RunFolder, *, show_text: bool | Collection[str] = False, naming: Naming = get_own_id
) -> Report:
    """The report of a run folder.

    Args:
        folder: Where the run is kept.
        show_text: Whether text from corpora is shown, where the run kept it; or of which audits.
        naming: How people and records are called in sentences.

    Raises:
        StoreError: The folder holds no results, or a result is damaged or newer.
    """
    results = folder.read_results()
    if not results:
        raise StoreError(
            f"{str(folder.path)!r} holds no results.", do="Run an audit with --out first.", code="no_results"
        )
    showing = show_text if not isinstance(show_text, bool) else results if show_text else ()
    answers = {
        name: read_answer(folder, result, show_text=name in showing, naming=naming) for name, result in results.items()
    }
    questions = _group_by_question(answers)
    in_order = [answer for each in questions for answer in each.answers]
    return Report(
        questions=questions,
        subject=build_subject(results),
        models=list_audited_models(folder, results),
        limits=tuple((answer.title, each, LIMITS[each.status]) for answer in in_order for each in answer.result.limits),
        steps={name: step for name, step in STEPS.items() if any(name in answer.steps for answer in in_order)},
        warnings=(*_list_report_warnings(results), *_list_unknown_matters(in_order)),
        untested=_list_untested(questions, results),
        annex=tuple(build_annex(in_order)),
    )


def _describe_examined(colours: list[str]) -> str:
    """The sentence of a headline on the questions that were examined, by their lights.

    >>> _describe_examined(["red", "green", "red"])
    '2 of 3 questions examined: evidence of memorisation. The others: 1 no evidence.'
    >>> _describe_examined(["green"])
    '0 of 1 question examined: evidence of memorisation; 1 no evidence.'
    """
    found, total = colours.count("red"), len(colours)
    counted = {words: colours.count(colour) for colour, words in HEADLINE_WORDS.items() if colour != "red"}
    rest = ", ".join(f"{count} {words}" for words, count in counted.items() if count)
    link = ". The others: " if found else "; "
    return f"{found} of {total} question{'s' * (total > 1)} examined: {FOUND}{f'{link}{rest}' if rest else ''}."


def _group_by_question(answers: Mapping[str, Answer]) -> tuple[QuestionAnswers, ...]:
    """The report's answers by the five questions, then all other questions with theirs."""
    heads = {name: _find_question_head(name, answers) for name in answers}
    questions = {
        **get_five_questions(),
        **{head: answers[head].result.question for head in heads.values() if head not in FIVE},
    }
    return tuple(
        QuestionAnswers(
            question=question,
            # the audit whose question it is comes before those that support it
            answers=tuple(
                answers[name] for name in sorted(answers, key=lambda name: name != audit) if heads[name] == audit
            ),
        )
        for audit, question in questions.items()
    )


def _find_question_head(name: str, answers: Mapping[str, Answer]) -> str:
    """The audit under whose question an answer stands in the report: its own, or the one that it supports."""
    other = answers[name].presentation.supports
    has_question = other in FIVE or (other in answers and not answers[other].presentation.supports)
    return other if has_question else name


def _list_report_warnings(results: Mapping[str, Result]) -> tuple[str, ...]:
    """What a reader must know before reading the report."""
    warnings = list[str]()
    for name, result in results.items():
        warnings += [f"{name}: {failed.error}" for failed in result.failed]
        warnings += [f"{name}: {describe_limit(limit)}" for limit in result.limits if limit.status != "kept"]
    return tuple(warnings)


def _list_unknown_matters(answers: Iterable[Answer]) -> list[str]:
    """What an audit of the report wants to be evidence for, and the annex has not."""
    known = {matter.id for matter in MATTERS}
    return [
        f"{answer.result.audit}: the annex has no question {matter!r}; it has {', '.join(sorted(known))}."
        for answer in answers
        for matter in answer.presentation.annex
        if matter not in known
    ]


def _list_untested(questions: tuple[QuestionAnswers, ...], results: Mapping[str, Result]) -> tuple[str, ...]:
    """What the report says was not tested: limits of the audits, failures, skips, withheld findings; each once."""
    untested = [each for result in results.values() for each in result.untested]
    untested += [f"Failed: the {each.audit} audit." for result in results.values() for each in result.failed]
    for name, result in results.items():
        untested += [f"Skipped: {title_name(each.finding or name)}. {each.reason}" for each in result.skipped]
        untested += [f"Withheld: {each.names}. {each.reason}" for each in group_withheld(result)]
    untested += [f"Not tested: {each.question}" for each in questions if not each.answers]
    return tuple(dict.fromkeys(untested))
