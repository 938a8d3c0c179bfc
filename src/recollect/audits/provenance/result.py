"""The result of the provenance audit: findings with intervals by user, a row per person, and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.audits.common.outcomes import NO_POWER, NOT_COMPARABLE
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.common.roc_table import build_roc_table
from recollect.audits.provenance.comparison import TestRule
from recollect.audits.provenance.decisions import OTHER_PERIOD, Decisions
from recollect.audits.provenance.safeguards import SPOILT, Safeguards, add_safeguards
from recollect.audits.provenance.verdict import build_verdict
from recollect.audits.provenance.word_alignment import WordRanks
from recollect.audits.provenance.word_frequencies import build_frequency_table
from recollect.files.arrow_tables import build_array, build_table
from recollect.results.result import Result
from recollect.stats.auc import auc
from recollect.stats.classification_rates import accuracy, false_positive_rate, precision, recall
from recollect.stats.intervals import Estimate, proportion
from recollect.stats.requirements import required_controls

if TYPE_CHECKING:
    from recollect.audits.provenance.audit import ProvenanceAudit

Flags = NDArray[np.bool_]
_UNTESTED = (
    "People are compared with calibration users from the controls: the p-value is valid for people who write about the "
    "same things and in the same way as they do.",
    "No evidence of training is no proof that a person's texts were not used: texts that were used once among many, or "
    "under differential privacy, leave no trace that this audit could detect.",
)
_CHOSEN = (
    "Queries are selected out of each person's texts, and where people have more or fewer texts than calibration "
    "users, out of as many: of a person who has fewer than that, the p-value is approximate, not exact. "
    "`--select random` avoids this."
)
_HISTOGRAM = "The support vector machine's own decisions guarantee no false positive rate; the p-values do."
_READINGS = {
    "auc": "The probability that a person whose texts were used scores above one whose texts were not; 0.5 is expected "
    "under the null hypothesis.",
    "accuracy": "Correct decisions about people, at the given proportion of members; decisions by corrected p-values.",
    "precision": "Of the people found, those whose texts were indeed used.",
    "recall": "Of the people whose texts were used, those found.",
    "false_positive_rate": "Of the people whose texts were not used, those wrongly found.",
    "svm_accuracy": "The paper's accuracy: correct decisions of the support vector machine, whatever its error rates.",
    "svm_precision": "The paper's precision: members among those whom the support vector machine classifies as such.",
    "svm_recall": "The paper's recall: members whom the support vector machine classifies as such.",
    "svm_false_positive_rate": "Calibration users, who are non-members, whom the support vector machine classifies as "
    "members.",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredPeople:
    """The data that a result is built from."""

    decisions: Decisions
    words: WordRanks
    """Of the audited people, and then of the calibration users."""
    pieces: tuple[Mapping[str, int], ...]
    """How many pieces of whose texts were queried, too: of the audited people's, and of the calibration users'."""
    silent: tuple[str, ...]
    """Audited people who have no text to query."""
    truth: Mapping[str, bool]
    """Who is a known member and who a known non-member."""
    safeguards: Safeguards
    """What is known beside the p-values."""

    def select_known(self, *, member: bool) -> Flags:
        """Who was tested and is a known member, or a known non-member [people]."""
        known = [self.truth.get(user) is member for user in self.decisions.users]
        return self.decisions.tested & np.array(known, dtype=np.bool_)


def build_result(audit: ProvenanceAudit, found: ScoredPeople) -> Result:
    """The result of the provenance audit, from what was scored and decided."""
    builder, decisions = ResultBuilder(audit), found.decisions
    rule = TestRule(alpha=audit.alpha, least=audit.least)
    _add_people_found(builder, audit, decisions)
    _add_quality(builder, audit, found)
    _add_provenance_notes(builder, audit, found)
    conclusion = add_safeguards(builder, decisions, found.safeguards, rule)
    verdict = build_verdict(decisions, conclusion, found.safeguards, rule)
    if conclusion.code is not None and not decisions.valid.any():
        builder.skip(None, code=conclusion.code, reason=verdict)
    members, others = (found.select_known(member=member) for member in (True, False))
    builder.tables |= {
        "users": _build_people_table(audit, found, conclusion.code),
        "calibration": build_table({"score": decisions.calibration}),
        "frequency": _build_frequencies(found),
    }
    if members.any() and others.any():
        builder.tables["roc"] = build_roc_table(decisions.score[members], decisions.score[others])
    chosen = (_CHOSEN,) if audit.select != "random" else ()
    histogram = (_HISTOGRAM,) if audit.method == "histogram" else ()
    return builder.build(
        verdict=verdict,
        outcome=conclusion.outcome,
        code=conclusion.code,
        untested=(*_UNTESTED, *chosen, *histogram),
    )


def _add_people_found(builder: ResultBuilder, audit: ProvenanceAudit, decisions: Decisions) -> None:
    """The findings of how many people's texts were used, and the smallest p-value."""
    valid = decisions.valid
    if not valid.any():
        return
    builder.try_estimate(
        "users_found",
        lambda: proportion(decisions.flagged[valid], of="people"),
        unit="share",
        reading=f"People whose texts were used, at a false discovery rate of {audit.alpha:g}; the interval is that of "
        "the share that would be found among more such people.",
    )
    builder.add_p_value(
        "lowest_p_corrected",
        float(decisions.corrected[valid].min()),
        n={"users": int(valid.sum()), "calibration_users": int(decisions.compared_with.max())},
        method="conformal against calibration users, Benjamini–Hochberg",
        reading="The smallest p-value of all people, corrected for their number; people are found from "
        f"{audit.alpha:g} down{', and it is above that' if decisions.corrected[valid].min() > audit.alpha else ''}.",
    )


def _add_quality(builder: ResultBuilder, audit: ProvenanceAudit, found: ScoredPeople) -> None:
    """The findings of how accurate decisions about people are, where ground truth is known."""
    decisions = found.decisions
    wanted: dict[str, Callable[[], Estimate]] = {}
    if found.truth and decisions.tested.any():
        members, others = (found.select_known(member=member) for member in (True, False))
        wanted["auc"] = lambda: auc(decisions.score[members], decisions.score[others])
        wanted |= _measure_quality("", decisions.flagged, members, others)
        if audit.method == "histogram":
            wanted |= _measure_quality("svm_", decisions.score > 0, members, others)
    if audit.method == "histogram":
        alarms = decisions.calibration[~np.isnan(decisions.calibration)] > 0
        wanted["svm_false_positive_rate"] = lambda: false_positive_rate(alarms)
    for name, estimate in wanted.items():
        unit = "probability" if name == "auc" else "share"
        builder.try_estimate(name, estimate, unit=unit, reading=_READINGS[name])


def _measure_quality(prefix: str, flagged: Flags, members: Flags, others: Flags) -> dict[str, Callable[[], Estimate]]:
    """Accuracy, precision and recall of some decisions about people, by the names of the findings."""
    wanted: dict[str, Callable[[], Estimate]] = {
        f"{prefix}accuracy": lambda: accuracy(flagged[members], flagged[others]),
        f"{prefix}precision": lambda: precision(flagged[members], flagged[others]),
        f"{prefix}recall": lambda: recall(flagged[members]),
    }
    return wanted if prefix else wanted | {"false_positive_rate": lambda: false_positive_rate(flagged[others])}


def _add_provenance_notes(builder: ResultBuilder, audit: ProvenanceAudit, found: ScoredPeople) -> None:
    """The notes of a provenance result: what was queried, who was left out, and what could not be decided."""
    _note_queries(builder, found)
    decisions = found.decisions
    untested = int((~decisions.tested).sum()) + len(found.silent)
    if untested:
        wordless = {user for user, words in zip(decisions.users, decisions.words, strict=True) if not words}
        silent = len(wordless.union(found.silent))
        who, more = (
            "person" if untested == 1 else "people",
            f"; {silent} had no text that could be queried (what controls or others wrote, too, is not)."
            if silent
            else ".",
        )
        twice = required_controls(audit.alpha / 2)
        cut = f" ({twice} for those who have more and are cut)" * bool((decisions.cut & ~decisions.tested).any())
        builder.note(
            "people_not_tested",
            f"{untested} {who} could not be tested: each needs {audit.least} words within the vocabulary of all "
            f"models, and {required_controls(audit.alpha)} calibration users with as many texts{cut}{more}",
        )
    if differing := int((decisions.tested & ~decisions.valid).sum()):
        of_another = OTHER_PERIOD in decisions.differences
        builder.note(
            "unlike_the_controls",
            f"{differing} of {int(decisions.tested.sum())} people write unlike all calibration users (see the column "
            "`unlike`): no p-value would be valid for them, and no decision is made about them. Give controls who "
            "write as they do."
            + " Those marked `another period` score high, but few calibration users wrote when they did."
            * of_another,
        )
    people, smallest = int(decisions.valid.sum()), float(decisions.smallest[decisions.valid].min(initial=0.5))
    together = int(np.ceil(smallest * people / audit.alpha - 1e-9))
    if together > 1:
        builder.note(
            "smallest_p",
            f"With {int(decisions.compared_with.max())} calibration users no p-value is below {smallest:.3g}: after "
            f"correction for {people} people, anybody is found only if at least {together} of them have so small a "
            "p-value. More controls, a larger --calibration or fewer people at once lower this number.",
        )


def _note_queries(builder: ResultBuilder, found: ScoredPeople) -> None:
    """Note in a provenance result how many texts, pieces and words the target scored."""
    words, people = found.words, len(found.decisions.users)
    texts = int(words.texts.sum())
    builder.note(
        "queries",
        f"The target scored {texts:,} texts: {int(words.texts[:people].sum()):,} of {people} audited people and "
        f"{int(words.texts[people:].sum()):,} of {len(words.users) - people} calibration users.",
    )
    inside, beside = (sum(each.values()) for each in found.pieces)
    if inside + beside:
        builder.note(
            "pieces",
            f"It also scored {inside + beside:,} pieces of these texts ({inside:,} and {beside:,}), which makes "
            f"{texts + inside + beside:,} queries.",
        )
    unknown, incomplete = int(words.unknown.sum()), int(words.incomplete.sum())
    if unknown + incomplete:
        builder.note(
            "words_left_out",
            f"Of {len(words) + unknown + incomplete:,} words, {unknown:,} were left out because they are outside some "
            f"model's vocabulary, and {incomplete:,} because some model did not predict them as a whole.",
        )


def _build_frequencies(found: ScoredPeople) -> pa.Table:
    """The table of frequent and rare words of a provenance result: of the people found, or of all if none was."""
    decisions = found.decisions
    flagged = decisions.flagged if decisions.flagged.any() else np.ones(len(decisions.users), np.bool_)
    audited = np.arange(len(found.words.users)) < len(decisions.users)
    people = audited.copy()
    people[: len(flagged)] = flagged
    return build_frequency_table(found.words, people, ~audited)


def _build_people_table(audit: ProvenanceAudit, found: ScoredPeople, code: str | None) -> pa.Table:
    """The table of a provenance result: one row per person, without p-values where these would mislead."""
    decisions, people, extra = found.decisions, len(found.decisions.users), len(found.silent)
    withheld = code == NOT_COMPARABLE or code in SPOILT
    undecided = code == NO_POWER or code in SPOILT
    decided = decisions.valid & ~np.array(withheld or undecided)
    spoilt = decisions.valid & np.array(undecided)
    cases = [decisions.words < audit.least, decisions.flagged & decided, decided, spoilt, decisions.tested]
    choices = ["too little text", "member", "no sign", "not decided", "unlike the controls"]
    decided = np.select(cases, choices, "no comparable users").tolist()
    names, none = [*decisions.users, *found.silent], np.zeros(extra, np.int64)
    pieces = np.array([found.pieces[0].get(user, 0) for user in decisions.users], dtype=np.int64)
    columns = {
        "user": build_array(names, pa.string()),
        "decision": build_array(decided + ["too little text"] * extra, pa.string()),
        "score": _build_people_column(decisions.score, extra),
        "p_value": _build_people_column(np.where(withheld | ~decisions.valid, np.nan, decisions.p), extra),
        "p_corrected": _build_people_column(np.where(withheld, np.nan, decisions.corrected), extra),
        "words": np.append(decisions.words, none),
        "queries": np.append(decisions.texts + pieces, none),
        "unknown_words": np.append(found.words.unknown[:people], none),
        "unlike": build_array([reason or None for reason in decisions.differences] + [None] * extra, pa.string()),
        "compared_with": np.append(decisions.compared_with, none),
        "member": build_array([found.truth.get(name) for name in names], pa.bool_()),
    }
    if audit.method == "histogram":
        members = [None if np.isnan(score) else bool(score > 0) for score in decisions.score]
        columns["svm_member"] = build_array(members + [None] * extra, pa.bool_())
    return build_table(columns)


def _build_people_column(values: NDArray[np.float64], more: int) -> pa.Array:
    """A column of the result's table of people: numbers, and null where there is none."""
    known = [None if np.isnan(value) else float(value) for value in values]
    return build_array(known + [None] * more, pa.float64())
