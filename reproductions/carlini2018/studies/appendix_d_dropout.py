"""Appendix D.2: dropout of 0 to 90 %, and early stopping; three models at each rate."""

from __future__ import annotations

from statistics import fmean

from common.outcomes import Figure, Outcome
from laboratory import EPOCHS, SEEDS, Laboratory, Row, Setting, Trained, at_end, kept, small
from scipy.stats import kruskal

RATES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
USEFUL = (0.0, 0.1, 0.2)
"""Rates at which the paper's models are about equally good."""


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    for rate in RATES:
        rows = [kept(lab, "appendix_d_dropout", f"dropout {rate:.0%}, seed {s}", at(rate, s), stopped) for s in SEEDS]
        details[f"{rate:.0%}"] = rows
        for when in ("early stopping", "last epoch"):
            bits = [row[when]["exposure_bits"] for row in rows]
            figures += [
                Figure(
                    f"dropout {rate:.0%}, {when}: test loss, nats, mean",
                    None,
                    fmean(r[when]["test_loss"] for r in rows),
                ),
                Figure(f"dropout {rate:.0%}, {when}: exposure, bits, mean", None, fmean(bits)),
                Figure(f"dropout {rate:.0%}, {when}: lowest", None, min(bits)),
                Figure(f"dropout {rate:.0%}, {when}: highest", None, max(bits)),
            ]
    useful = [[row["early stopping"]["exposure_bits"] for row in details[f"{rate:.0%}"]] for rate in USEFUL]
    p = float(kruskal(*useful).pvalue)
    return Outcome(
        title="Appendix D.2: dropout and early stopping",
        scale=f"2 % of the treebank instead of 5 %, at most {EPOCHS} epochs, {len(SEEDS)} models at each rate instead "
        "of ten; early stopping takes the epoch of the lowest validation loss.",
        figures=[
            Figure("p-value that dropout of 0 to 20 % does not matter (Kruskal–Wallis)", "not significant", p),
            *figures,
        ],
        details=details,
    )


def at(rate: float, seed: int) -> Setting:
    """A model with such dropout; without any it is a base model."""
    return small(*((f"model.dropout={rate}",) if rate else ()), seed=seed)


def stopped(lab: Laboratory, model: Trained) -> dict[str, Row]:
    """Exposure and test loss at the lowest validation loss and at the end."""
    folders = {"early stopping": model.after(model.best_epoch), "last epoch": model.folder}
    return {when: at_end(lab, folder, model.canaries[0]) for when, folder in folders.items()}
