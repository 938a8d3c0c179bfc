"""Both methods on the same models, and their figures beside the paper's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from common.outcomes import Figure, Outcome
from laboratory import METHODS, Laboratory, Row, Scene
from printed import Printed

from recollect.corpora.corpus import Corpus

REVISION = 1
"""Raised when audits are made otherwise; what was kept before is then made anew."""
COLUMNS = (
    "auc",
    "auc_interval",
    "svm_accuracy",
    "svm_precision",
    "svm_recall",
    "svm_false_positive_rate",
    "precision",
    "recall",
    "false_positive_rate",
)
"""What is kept of an audit."""


@dataclass(frozen=True)
class Comparison:
    """Figures and details of several audits, as they are made."""

    lab: Laboratory
    study: str = ""
    """With a name, each audit is kept among the paper's results at once, and not made again."""
    figures: list[Figure] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def add(
        self,
        what: str,
        scene: Scene | Callable[[], Scene],
        printed: Printed = Printed(),  # noqa: B008 - frozen
        *,
        audited: Corpus | None = None,
        **settings: Any,
    ) -> dict[str, Row]:
        """Audit a scene by both methods.

        Args:
            what: What the figures are called.
            scene: The target and its shadows, or what trains them if they are needed.
            printed: The paper's figures.
            audited: Other texts of the audited people.
            **settings: Of the audit.
        """

        def make() -> dict[str, Row]:
            made = scene() if callable(scene) else scene
            return {method: self.lab.audit(made, audited=audited, method=method, **settings) for method in METHODS}

        rows = self.kept(what, settings, lambda: {method: slim(row) for method, row in make().items()}, make)
        self.figures.extend(self.beside(what, rows, printed))
        self.details[what] = rows
        return rows

    def kept(self, what: str, made_of: Any, make: Callable[[], Any], whole: Callable[[], Any] | None = None) -> Any:
        """Something that is made once, if the comparison has a name; otherwise the whole of it."""
        if not self.study:
            return (whole or make)()
        return self.lab.keep(self.study, what, [REVISION, what, made_of], make)

    def beside(self, what: str, rows: dict[str, Row], printed: Printed) -> list[Figure]:
        """The figures of both methods."""
        theirs, ours = rows["histogram"], rows["calibrated"]
        return [
            Figure(f"{what}: histogram, AUC", printed.auc, theirs.get("auc")),
            Figure(f"{what}: histogram, accuracy of the SVM", printed.accuracy, theirs.get("svm_accuracy")),
            Figure(f"{what}: histogram, precision of the SVM", printed.precision, theirs.get("svm_precision")),
            Figure(f"{what}: histogram, recall of the SVM", printed.recall, theirs.get("svm_recall")),
            Figure(f"{what}: histogram, false positive rate of the SVM", None, theirs.get("svm_false_positive_rate")),
            Figure(f"{what}: calibrated, AUC", None, ours.get("auc")),
            Figure(f"{what}: calibrated, precision of decisions", None, ours.get("precision")),
            Figure(f"{what}: calibrated, recall of decisions", None, ours.get("recall")),
            Figure(f"{what}: calibrated, false positive rate", None, ours.get("false_positive_rate")),
        ]

    def outcome(self, title: str, scale: str) -> Outcome:
        """What there is so far."""
        return Outcome(title=title, scale=scale, figures=list(self.figures), details=dict(self.details))


def slim(row: Row) -> Row:
    """What is kept of an audit: no text, no name."""
    return {name: row[name] for name in COLUMNS if row.get(name) is not None}
