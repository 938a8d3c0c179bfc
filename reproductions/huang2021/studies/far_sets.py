"""Table 2a, the far set: is it the clothes that KS takes for memorised? Photographs, grey and cropped, in their place.

Targets, calibration sets and their models are those of Table 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from cells import ks_row
from common.outcomes import Figure, Outcome
from counting import printed_wrong
from laboratory import QUALITIES, Images, Laboratory, of_arrays
from studies.table2_benchmark import KS
from tables import MNIST, calibration_of, far_images, target_of

from recollect.corpora.corpus import Corpus
from recollect.streams import stream

PHOTOGRAPHS = "cifar10/images.npz"
SIDE = 28


def study(lab: Laboratory) -> Outcome:
    figures, details = [], {}
    makers = {"clothes": lambda seed: far_images(lab, MNIST, seed), "photographs": lambda seed: photographs(lab, seed)}
    for name, make in makers.items():
        found = {quality: [rho(lab, seed, quality, name, make) for seed in MNIST.trainings] for quality in QUALITIES}
        details[name] = found
        every = [each for several in found.values() for each in several]
        paper = printed_wrong([row["S"] for row in KS.values() if "S" in row], lambda score: score < 1)
        figures.append(Figure(f"{name}: called memorised, of {len(every)}", paper, sum(each < 1 for each in every)))
        for quality, several in found.items():
            mean = sum(several) / len(several)
            figures.append(Figure(f"{name}, k = {quality}: ρ, mean of {len(several)}", KS[quality].get("S"), mean))
    return Outcome(
        title="KS and far sets",
        scale=f"{len(MNIST.trainings)} trainings of Table 2. The paper's far set is SVHN.",
        figures=figures,
        details=details,
    )


def rho(lab: Laboratory, seed: int, quality: int, name: str, images: Callable[[int], Corpus]) -> float:
    """ρ_KS of a far set."""

    def make() -> float:
        calibration = calibration_of(lab, MNIST, seed, quality)
        return float(ks_row(lab, MNIST.trainer(), target_of(lab, MNIST, seed), calibration, images(seed))["rho_ks"])

    kept: float = lab.keep("far_sets", f"{name}-{seed}-{quality}", str(replace(MNIST, trainings=())), make)
    return kept


def photographs(lab: Laboratory, seed: int) -> Corpus:
    """Photographs of ten kinds of things as digits are: grey, and the middle of each."""
    x, y = lab.images(PHOTOGRAPHS)
    edge = (x.shape[1] - SIDE) // 2
    middle: Images = x[:, edge : edge + SIDE, edge : edge + SIDE]
    grey = middle.mean(axis=3).round().astype(np.uint8) if middle.ndim == 4 else middle
    some = stream(seed, "far", "photographs").permutation(len(grey))[: MNIST.sizes.fold]
    return of_arrays(grey[some], y[some] % MNIST.classes, some + 200_000, "CIFAR-10")
