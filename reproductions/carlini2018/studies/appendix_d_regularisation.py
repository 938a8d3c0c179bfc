"""Appendix D: weight decay, dropout and rounding to 8 bits do not keep a secret from being memorised."""

from __future__ import annotations

from pathlib import Path

from common.outcomes import Figure, Outcome
from laboratory import COUNTED, TEN, Laboratory, Row, after_ten

from recollect.models.loading.quantisation import quantise

CHANGES = {"none": (), "dropout 0.1": ("model.dropout=0.1",), "weight decay 1e-5": ("training.weight_decay=0.00001",)}


def study(lab: Laboratory) -> Outcome:
    rows = {name: both(lab, *after_ten(lab, *changes)) for name, changes in CHANGES.items()}
    plain, canaries = after_ten(lab)
    rows["8 bits"] = both(lab, quantise(str(plain), plain.with_name(f"{plain.name}-8-bits")), canaries)
    figures = []
    for name, row in rows.items():
        figures += [
            Figure(f"{name}: exposure, bits", "as without", row["exposure_bits"]),
            Figure(f"{name}: rank", None, row["rank"]),
            Figure(f"{name}: test loss, nats", {"none": 1.18, "8 bits": 1.19}.get(name), row["test_loss"]),
        ]
    return Outcome(
        title="Appendix D: regularisation",
        scale=f"2 % of the treebank instead of 5 % or all, {TEN} epochs, one model each instead of ten.",
        figures=figures,
        details=rows,
    )


def both(lab: Laboratory, folder: Path, canaries: Path) -> Row:
    """Exposure and test loss."""
    return {**lab.exposure(folder, COUNTED, canaries), "test_loss": lab.test_loss(folder)}
