"""Both methods on the same models, and their figures beside the paper's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from common.outcomes import Figure
from laboratory import METHODS, Laboratory, Row, Scene
from printed import Printed

from recollect.corpora.corpus import Corpus


@dataclass(frozen=True)
class Comparison:
    """Figures and details of several audits, as they are made."""

    lab: Laboratory
    figures: list[Figure] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def add(
        self,
        what: str,
        scene: Scene,
        printed: Printed = Printed(),  # noqa: B008 - frozen
        *,
        audited: Corpus | None = None,
        **settings: Any,
    ) -> dict[str, Row]:
        """Audit a scene by both methods.

        Args:
            what: What the figures are called.
            scene: The target and its shadows.
            printed: The paper's figures.
            audited: Other texts of the audited people.
            **settings: Of the audit.
        """
        rows = {method: self.lab.audit(scene, audited=audited, method=method, **settings) for method in METHODS}
        theirs, ours = rows["histogram"], rows["calibrated"]
        self.figures.extend(
            [
                Figure(f"{what}: histogram, AUC", printed.auc, theirs.get("auc")),
                Figure(f"{what}: histogram, accuracy of the SVM", printed.accuracy, theirs.get("svm_accuracy")),
                Figure(f"{what}: histogram, precision of the SVM", printed.precision, theirs.get("svm_precision")),
                Figure(f"{what}: histogram, recall of the SVM", printed.recall, theirs.get("svm_recall")),
                Figure(f"{what}: histogram, false alarms of the SVM", None, theirs.get("svm_false_positive_rate")),
                Figure(f"{what}: calibrated, AUC", None, ours.get("auc")),
                Figure(f"{what}: calibrated, precision of decisions", None, ours.get("precision")),
                Figure(f"{what}: calibrated, recall of decisions", None, ours.get("recall")),
                Figure(f"{what}: calibrated, false alarms", None, ours.get("false_positive_rate")),
            ]
        )
        self.details[what] = rows
        return rows
