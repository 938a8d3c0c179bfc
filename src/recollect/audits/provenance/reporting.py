"""What is said of the decisions: findings with intervals by user, a row per person, and a sentence for a lawyer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect.audits.common.roc import build_roc_table
from recollect.audits.provenance.frequency import by_frequency
from recollect.audits.provenance.judging import Decisions
from recollect.audits.provenance.verdicts import verdict
from recollect.audits.provenance.words import Words
from recollect.errors import NotEnoughData
from recollect.results.result import Finding, Note, Result, Skipped
from recollect.stats.auc import auc
from recollect.stats.decisions import accuracy, false_positive_rate, precision, recall
from recollect.stats.intervals import Estimate, proportion
from recollect.stats.support import controls_for_p

if TYPE_CHECKING:
    from recollect.audits.provenance.audit import ProvenanceAudit

Flags = NDArray[np.bool_]
_UNTESTED = (
    "People are compared with calibration users from the controls: whoever writes about other things, or in another "
    "way, than they do is not like them, and the p-value then promises less.",
    "No sign of training is no proof that a person's texts were not used: texts that were used once among many, or "
    "under differential privacy, leave no trace that this audit could see.",
)
_CHOSEN = (
    "Whoever has no more texts than are asked about is compared, with all of theirs, with texts of calibration users "
    "that were chosen from more: the p-value is then near the truth, not exact. `--select random` chooses alike."
)
_HISTOGRAM = "The support vector machine's own decisions promise no rate of false alarms; the p-values do."


@dataclass(frozen=True, kw_only=True, eq=False)
class Told:
    """All that a result is made of."""

    audit: ProvenanceAudit
    decisions: Decisions
    words: Words
    """Of the audited people, and then of the calibration users."""
    pieces: tuple[Mapping[str, int], ...]
    """How many pieces of whose texts were asked about, too: of the audited people's, and of the calibration users'."""
    silent: tuple[str, ...]
    """Audited people of whom there was no text to ask about."""
    truth: Mapping[str, bool] | None
    """Who trained the target, if it is known."""
    shift: str
    """What is to be said if the people as a group are unlike the calibration users."""

    def result(self) -> Result:
        """The result."""
        audit, found = self.audit, self.decisions
        findings, skipped = self._findings()
        said, outcome, code = verdict(found, alpha=audit.alpha, least=audit.least)
        if not found.sound.any():
            skipped = (Skipped(audit=audit.name, code=code or "not_judged", reason=said), *skipped)
        return Result(
            audit=audit.name,
            question=audit.question,
            verdict=said,
            outcome=outcome,
            outcome_code=code,
            findings=findings,
            skipped=skipped,
            notes=tuple(self._notes()),
            untested=(
                *_UNTESTED,
                *((_CHOSEN,) if audit.select != "random" else ()),
                *((_HISTOGRAM,) if audit.method == "histogram" else ()),
            ),
        ).with_tables(
            users=self._table(),
            calibration=pa.table({"score": found.controls}),
            frequency=self._by_frequency(),
            **self._roc(),
        )

    def _roc(self) -> dict[str, pa.Table]:
        """The ROC curve of the same people as the AUC; nothing where there are not both members and others."""
        found = self.decisions
        truth = np.array([None if self.truth is None else self.truth[user] for user in found.users], dtype=object)
        members, others = (found.judged & (truth == known) for known in (True, False))
        if not members.any() or not others.any():
            return {}
        return {"roc": build_roc_table(found.score[members], found.score[others])}

    def _findings(self) -> tuple[tuple[Finding, ...], tuple[Skipped, ...]]:
        """What holds for all people together."""
        found, judged = self.decisions, self.decisions.judged
        made, skipped = [], list[Skipped]()
        if found.sound.any():
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
                skipped.append(Skipped(audit=self.audit.name, finding=name, code=refusal.code, reason=refusal.found))
        return tuple(made), tuple(skipped)

    def _notes(self) -> list[Note]:
        """What a reader ought to know."""
        found, words, audit = self.decisions, self.words, self.audit
        people = len(found.users)
        unknown, ragged = int(words.unknown.sum()), int(words.ragged.sum())
        every = len(words) + unknown + ragged
        asked = int(words.texts.sum())
        notes = list[Note]()

        def note(code: str, text: str) -> None:
            notes.append(Note(code=code, text=text))

        note(
            "queries",
            f"The target was asked about {asked:,} texts: {int(words.texts[:people].sum()):,} of {people} audited "
            f"people and {int(words.texts[people:].sum()):,} of {len(words.users) - people} calibration users.",
        )
        inside, beside = (sum(each.values()) for each in self.pieces)
        if inside + beside:
            note(
                "pieces",
                f"It was asked about {inside + beside:,} pieces of these texts, too ({inside:,} and {beside:,}), which "
                f"makes {asked + inside + beside:,} queries.",
            )
        if unknown + ragged:
            note(
                "words_left_out",
                f"Of {every:,} words, {unknown:,} were left out because some model does not know them, and {ragged:,} "
                "because some model did not predict them whole.",
            )
        short = sorted({*self.silent, *(u for u, words in zip(found.users, found.words, strict=True) if not words)})
        few = int((~found.judged).sum()) + len(self.silent)
        if few:
            note(
                "people_not_judged",
                f"{few} people could not be judged: {audit.least} words that all models know are needed of each, and "
                f"{controls_for_p(audit.alpha)} calibration users with as many texts"
                + (f"; of {len(short)} there was no text that could be asked about." if short else "."),
            )
        if self.shift:
            note("controls_of_another_kind", self.shift)
        if differing := int((found.judged & ~found.sound).sum()):
            note(
                "unlike_the_controls",
                f"{differing} of {int(found.judged.sum())} people write unlike all calibration users (see the column "
                "`unlike`): their p-values promise nothing, and they are not accused. Controls who write as they do "
                "would change that.",
            )
        floor = 1 / (1 + found.compared[found.sound].max(initial=1))
        together = int(np.ceil(floor * found.sound.sum() / audit.alpha - 1e-9))
        if together > 1:
            note(
                "smallest_p",
                f"With {int(found.compared.max())} calibration users no p-value is below {floor:.3g}: of "
                f"{int(found.sound.sum())} people, fewer than {together} cannot be found. More controls, or fewer "
                "people at once, would change that.",
            )
        return notes

    def _by_frequency(self) -> pa.Table:
        """The ranks of frequent and rare words: of those who were found, or of everybody if nobody was."""
        found = self.decisions
        flagged = found.flagged if found.flagged.any() else np.ones(len(found.users), np.bool_)
        others = np.zeros(len(found.controls), np.bool_)
        return by_frequency(
            self.words, np.append(flagged, others), np.append(np.zeros(len(flagged), np.bool_), ~others)
        )

    @property
    def _queries(self) -> NDArray[np.int64]:
        """How many queries each person's texts were, with their pieces [people]."""
        cut = [self.pieces[0].get(user, 0) for user in self.decisions.users]
        return self.decisions.texts + np.array(cut, dtype=np.int64)

    def _table(self) -> pa.Table:
        """One row per person."""
        found, people = self.decisions, len(self.decisions.users)
        extra = len(self.silent)
        enough = found.words >= self.audit.least
        cases = [~enough, found.flagged, found.sound, found.judged]
        names = ["too little text", "member", "no sign", "unlike the controls"]
        said = np.select(cases, names, "nobody to compare with").tolist()
        names = [*found.users, *self.silent]
        columns = {
            "user": names,
            "decision": said + ["too little text"] * extra,
            "score": _numbers(found.score, extra),
            "p_value": _numbers(found.p, extra),
            "p_corrected": _numbers(found.corrected, extra),
            "words": np.append(found.words, np.zeros(extra, np.int64)),
            "queries": np.append(self._queries, np.zeros(extra, np.int64)),
            "unknown_words": np.append(self.words.unknown[:people], np.zeros(extra, np.int64)),
            "unlike": pa.array([reason or None for reason in found.unlike] + [None] * extra, pa.string()),
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
        proportion(found.flagged[found.sound], of="people"),
        name="users_found",
        unit="share",
        reading=f"People whose texts were used, at a false discovery rate of {alpha:g}; the interval is that of the "
        "share that would be found among more such people.",
    )


def _lowest(found: Decisions) -> Finding:
    """The strongest evidence."""
    return Finding(
        name="lowest_p_corrected",
        value=float(found.corrected[found.sound].min()),
        why_no_interval="A p-value is itself a statement about chance.",
        unit="probability",
        n={"users": int(found.sound.sum()), "calibration_users": int(found.compared.max())},
        method="conformal against calibration users, Benjamini–Hochberg",
        reading="The smallest p-value of all people, corrected for how many were asked about.",
    )


def _numbers(values: NDArray[np.float64], more: int) -> pa.Array:
    """Numbers, and nothing where there is none."""
    return pa.array([*(None if np.isnan(value) else float(value) for value in values), *([None] * more)], pa.float64())
