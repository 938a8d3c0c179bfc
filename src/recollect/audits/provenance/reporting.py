"""What is said of the decisions: findings with intervals by user, a row per person, and a sentence for a lawyer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.audits.provenance.judging import Decisions
from recollect.audits.provenance.words import Words
from recollect.errors import NotEnoughData
from recollect.results.result import Finding, Outcome, Result, Skipped
from recollect.stats.auc import auc
from recollect.stats.decisions import accuracy, false_positive_rate, precision, recall
from recollect.stats.intervals import Estimate, proportion
from recollect.stats.support import controls_for_p

if TYPE_CHECKING:
    from recollect.audits.provenance.audit import ProvenanceAudit

Flags = NDArray[np.bool_]
_LIMITS = (
    "People are compared with calibration users from the controls: whoever writes about other things, or in another "
    "way, than they do is not like them, and the p-value then promises less.",
    "No sign of training is no proof that a person's texts were not used: texts that were used once among many, or "
    "under differential privacy, leave no trace that this audit could see.",
)
_HISTOGRAM = "The support vector machine's own decisions promise no rate of false alarms; the p-values do."


@dataclass(frozen=True, kw_only=True, eq=False)
class Told:
    """All that a result is made of."""

    audit: ProvenanceAudit
    decisions: Decisions
    words: Words
    """Of the audited people, and then of the calibration users."""
    silent: tuple[str, ...]
    """Audited people of whom there was no text to ask about."""
    truth: Mapping[str, bool] | None
    """Who trained the target, if it is known."""

    def result(self) -> Result:
        """The result."""
        audit, found = self.audit, self.decisions
        findings, skipped = self._findings()
        outcome: Outcome = "found" if found.flagged.any() else "cannot tell" if self._hindered else "not found"
        if not found.judged.any():
            outcome = "cannot tell"
            skipped = (Skipped(audit=audit.name, reason=self._verdict()), *skipped)
        return Result(
            audit=audit.name,
            question=audit.question,
            verdict=self._verdict(),
            outcome=outcome,
            findings=findings,
            skipped=skipped,
            notes=tuple(self._notes()),
            limits=(*_LIMITS, *((_HISTOGRAM,) if audit.method == "histogram" else ())),
        ).with_tables(users=self._table(), calibration=pa.table({"score": found.controls}))

    def _findings(self) -> tuple[tuple[Finding, ...], tuple[Skipped, ...]]:
        """What holds for all people together."""
        found, judged = self.decisions, self.decisions.judged
        made, skipped = [], list[Skipped]()
        if judged.any():
            made += [_flagged(found, self.audit.alpha), _lowest(found)]
        known = None if self.truth is None else np.array([self.truth[user] for user in found.users], dtype=np.bool_)
        wanted: dict[str, Callable[[], Estimate]] = {}
        if known is not None and judged.any():
            members, others = judged & known, judged & ~known
            wanted |= {"auc": lambda: auc(found.score[members], found.score[others])}
            wanted |= _quality("", found.flagged, members, others)
            if self.audit.method == "histogram":
                wanted |= _quality("svm_", found.score > 0, members, others)
        if self.audit.method == "histogram":
            alarms = found.controls[~np.isnan(found.controls)] > 0
            wanted["svm_false_alarm_rate"] = lambda: false_positive_rate(alarms)
        for name, estimate in wanted.items():
            try:
                made.append(Finding.of(estimate(), name=name, unit=_UNITS.get(name, "share"), reading=_READINGS[name]))
            except NotEnoughData as refusal:
                skipped.append(Skipped(audit=self.audit.name, finding=name, reason=refusal.found))
        return tuple(made), tuple(skipped)

    def _verdict(self) -> str:
        """One sentence that a lawyer can read."""
        found, alpha = self.decisions, self.audit.alpha
        flagged, judged = int(found.flagged.sum()), int(found.judged.sum())
        if not judged:
            return self._no_saying()
        if judged == 1:
            return _verdict_of_one(found)
        if self._hindered:
            return self._undecided()
        if not flagged:
            return (
                f"No sign that the texts of any of the {judged} people were used to train this model: it predicts "
                "their words no better than those of people who are known not to be in its training data."
            )
        return (
            f"The texts of {flagged} of {judged} people were used to train this model: it predicts their words better "
            f"than chance allows. At most {alpha:.0%} of these {flagged} findings are expected to be false."
        )

    @property
    def _highest(self) -> int:
        """How many people score above every calibration user they were compared with."""
        found = self.decisions
        return int((found.p[found.judged] * (1 + found.compared[found.judged]) < 1.5).sum())

    @property
    def _hindered(self) -> bool:
        """Whether some people score above everybody they were compared with, and that is still not enough."""
        return self._highest > 0 and not self.decisions.flagged.any()

    def _undecided(self) -> str:
        """What is to be said when too few users calibrate for so many people."""
        judged, highest = int(self.decisions.judged.sum()), self._highest
        needed = controls_for_p(self.audit.alpha * highest / judged)
        return (
            f"There is no saying: {highest} of {judged} people are predicted better than all of the "
            f"{int(self.decisions.compared.max())} calibration users, but among so many people that may be chance. "
            f"With at least {needed} calibration users it could be told."
        )

    def _no_saying(self) -> str:
        """Why nobody could be judged, and what would be needed."""
        found, least = self.decisions, self.audit.least
        if int(found.words.max(initial=0)) < least:
            return (
                f"There is no saying: nobody has enough text. At least {least} words that all models know are needed "
                f"from a person; the most that anybody has are {int(found.words.max(initial=0))}."
            )
        return (
            f"There is no saying: at most {int(found.compared.max())} calibration users have as many texts as a person "
            f"here and at least {least} words that all models know, and {controls_for_p(alpha=self.audit.alpha)} are "
            "needed: give more controls, or ask about more texts."
        )

    def _notes(self) -> list[str]:
        """What a reader ought to know."""
        found, words, audit = self.decisions, self.words, self.audit
        people = len(found.users)
        unknown, ragged = int(words.unknown.sum()), int(words.ragged.sum())
        every = len(words) + unknown + ragged
        asked = int(words.texts.sum())
        notes = [
            f"The target was asked about {asked:,} texts: {int(words.texts[:people].sum()):,} of {people} audited "
            f"people and {int(words.texts[people:].sum()):,} of {len(words.users) - people} calibration users."
        ]
        if unknown + ragged:
            notes.append(
                f"Of {every:,} words, {unknown:,} were left out because some model does not know them, and {ragged:,} "
                "because some model did not predict them whole."
            )
        short = sorted({*self.silent, *(u for u, words in zip(found.users, found.words, strict=True) if not words)})
        few = int((~found.judged).sum()) + len(self.silent)
        if few:
            notes.append(
                f"{few} people could not be judged: {audit.least} words that all models know are needed of each, and "
                f"{controls_for_p(audit.alpha)} calibration users with as many texts"
                + (f"; of {len(short)} there was no text that could be asked about." if short else ".")
            )
        floor = 1 / (1 + found.compared[found.judged].max(initial=1))
        together = int(np.ceil(floor * found.judged.sum() / audit.alpha - 1e-9))
        if together > 1:
            notes.append(
                f"With {int(found.compared.max())} calibration users no p-value is below {floor:.3g}: of "
                f"{int(found.judged.sum())} people, fewer than {together} cannot be found. More controls, or fewer "
                "people at once, would change that."
            )
        return notes

    def _table(self) -> pa.Table:
        """One row per person."""
        found, people = self.decisions, len(self.decisions.users)
        extra = len(self.silent)
        enough = found.words >= self.audit.least
        cases = [~enough, found.flagged, found.judged]
        said = np.select(cases, ["too little text", "member", "no sign"], "nobody to compare with").tolist()
        names = [*found.users, *self.silent]
        columns = {
            "user": names,
            "decision": said + ["too little text"] * extra,
            "score": _numbers(found.score, extra),
            "p_value": _numbers(found.p, extra),
            "p_corrected": _numbers(found.corrected, extra),
            "words": np.append(found.words, np.zeros(extra, np.int64)),
            "queries": np.append(found.texts, np.zeros(extra, np.int64)),
            "unknown_words": np.append(self.words.unknown[:people], np.zeros(extra, np.int64)),
            "compared_with": np.append(found.compared, np.zeros(extra, np.int64)),
            "member": pa.array([None if self.truth is None else self.truth[name] for name in names], pa.bool_()),
        }
        if self.audit.method == "histogram":
            columns["svm_member"] = pa.array(
                [None if np.isnan(score) else bool(score > 0) for score in found.score] + [None] * extra, pa.bool_()
            )
        return pa.table(columns)


_UNITS = {"auc": "probability"}
_READINGS = {
    "auc": "How often a person whose texts were used scores above one whose texts were not; 0.5 is chance.",
    "accuracy": "Right decisions about people, at the given proportion of members; decisions by corrected p-values.",
    "precision": "Of the people found, those whose texts were indeed used.",
    "recall": "Of the people whose texts were used, those found.",
    "false_positive_rate": "Of the people whose texts were not used, those wrongly found.",
    "svm_accuracy": "The paper's accuracy: right decisions of the support vector machine, whatever it may cry wolf.",
    "svm_precision": "The paper's precision: members among those whom the support vector machine calls so.",
    "svm_recall": "The paper's recall: members whom the support vector machine calls so.",
    "svm_false_alarm_rate": "Calibration users, who are no members, whom the support vector machine calls members.",
}


def _quality(prefix: str, flagged: Flags, members: Flags, others: Flags) -> dict[str, Callable[[], Estimate]]:
    """How good some decisions are, where the truth is known."""
    wanted: dict[str, Callable[[], Estimate]] = {
        f"{prefix}accuracy": lambda: accuracy(flagged[members], flagged[others]),
        f"{prefix}precision": lambda: precision(flagged[members], flagged[others]),
        f"{prefix}recall": lambda: recall(flagged[members]),
    }
    return wanted if prefix else wanted | {"false_positive_rate": lambda: false_positive_rate(flagged[others])}


def _flagged(found: Decisions, alpha: float) -> Finding:
    """The share of people found."""
    return Finding.of(
        proportion(found.flagged[found.judged], of="people"),
        name="users_found",
        unit="share",
        reading=f"People whose texts were used, at a false discovery rate of {alpha:g}; the interval is that of the "
        "share that would be found among more such people.",
    )


def _lowest(found: Decisions) -> Finding:
    """The strongest evidence."""
    return Finding(
        name="lowest_p_corrected",
        value=float(found.corrected[found.judged].min()),
        why_no_interval="A p-value is itself a statement about chance.",
        unit="probability",
        n={"users": int(found.judged.sum()), "calibration users": int(found.compared.max())},
        method="conformal against calibration users, Benjamini–Hochberg",
        reading="The smallest p-value of all people, corrected for how many were asked about.",
    )


def _verdict_of_one(found: Decisions) -> str:
    """The verdict about a single person."""
    (place,) = np.flatnonzero(found.judged)
    p, others = float(found.p[place]), int(found.compared[place])
    above = round(p * (others + 1)) - 1
    if found.flagged[place]:
        rarely = "none" if not above else f"only {above}"
        return (
            f"This person's texts were used to train this model, as far as its answers tell: {rarely} of {others} "
            f"people who are known not to be in its training data are predicted as well (p = {p:.3g})."
        )
    return (
        f"No sign that this person's texts were used to train this model: {above} of {others} people who are known "
        f"not to be in its training data are predicted as well or better (p = {p:.2g})."
    )


def _numbers(values: NDArray[np.float64], more: int) -> pa.Array:
    """Numbers, and nothing where there is none."""
    return pa.array([*(None if np.isnan(value) else float(value) for value in values), *([None] * more)], pa.float64())
