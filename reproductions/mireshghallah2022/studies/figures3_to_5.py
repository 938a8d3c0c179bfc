"""Figures 3, 4 and 5: histograms of ratio and loss, and their ROC curves, on plain and on logarithmic axes."""

from __future__ import annotations

from pathlib import Path

from common.outcomes import Figure, Outcome
from drawing import curves, example, hills
from laboratory import SCALE, Laboratory, Setting, long

FOLDER = Path(__file__).parents[1] / "figures"


def study(lab: Laboratory) -> Outcome:
    setting = Setting()
    parts = lab.parts(setting, long)
    ratio, loss = (lab.attack(setting, parts, signal=signal) for signal in ("ratio", "loss"))
    record = example(ratio, loss)
    hills(FOLDER / "figure3a_ratio.svg", ratio, "log-likelihood ratio", record)
    hills(FOLDER / "figure3b_loss.svg", loss, "minus the loss", record)
    curves(FOLDER / "figure4_roc.svg", ratio, loss, log=False)
    curves(FOLDER / "figure5_roc_logarithmic.svg", ratio, loss, log=True)
    figures = [Figure("figures drawn", 4, len(list(FOLDER.glob("figure*.svg"))))]
    return Outcome(title="Figures 3 to 5", scale=SCALE, figures=figures)
