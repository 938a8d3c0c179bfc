"""Section 6.1: how early is the second half of a secret known to someone who knows the first?"""

from __future__ import annotations

from statistics import fmean, median

from common.outcomes import Figure, Outcome
from laboratory import NUMBER, Laboratory, Row, Trained, base_models, secret_of

from recollect.audits.exposure.audit import ExposureAudit

EPOCHS = (1, 3, 5, 8, 10)
PAPER_EPOCH = 5
"""After so many epochs the paper's second half can be extracted uniquely."""
KNOWN = 4
"""Digits of the nine that are known."""
REST = 9 - KNOWN


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for epoch in EPOCHS:
        rows = [known(lab, model, epoch) for model in base_models(lab)]
        details[f"epoch {epoch}"] = rows
        figures += [
            Figure(
                f"epoch {epoch}: median rank of the last {REST} digits, of 10⁵", None, median(r["rank"] for r in rows)
            ),
            Figure(f"epoch {epoch}: mean exposure of them, bits (16.6 is all)", None, fmean(bits(rows))),
            Figure(
                f"epoch {epoch}: share of models in which they are the likeliest",
                1.0 if epoch == PAPER_EPOCH else None,
                fmean(row["rank"] == 1 for row in rows),
            ),
        ]
    return Outcome(
        title="Section 6.1: half of the secret is known",
        scale=f"The base models of 2 % of the treebank (paper: 5 %); {KNOWN} of nine digits are known; ranks are "
        "counted exactly.",
        figures=figures,
        details=details,
    )


def bits(rows: list[Row]) -> list[float]:
    """The exposures."""
    return [row["exposure_bits"] for row in rows]


def known(lab: Laboratory, model: Trained, epoch: int) -> Row:
    """The exposure of the digits that are not known."""
    secret = secret_of(model.canaries[0])
    begin = NUMBER.index("{")
    format = f"{secret[: begin + KNOWN]}{{digits:{REST}}}"
    audit = ExposureAudit(method="exact", draws=1000, max_steps=200_000, format=format, secrets=(secret,))
    return lab.exposure(model.after(epoch), audit)
