"""Figure 2 (a): correctness, confidence and negative entropy of M1, M6 and the far set under the target."""

from __future__ import annotations

import numpy as np
from cells import held
from common.outcomes import Figure, Outcome
from laboratory import Laboratory, first, mnist_recipe
from mnist import divided, far_images

from recollect.models.loading import load_model


def study(lab: Laboratory) -> Outcome:
    drawn = divided(lab, 0)
    model = load_model(str(lab.trained(mnist_recipe(), drawn.training, 0)))
    figures, details = [], {}
    for name, query in {"M1": drawn.folds[0], "M6": first(drawn.fresh, 2000), "S": far_images(lab)}.items():
        said = held(model, query).whole
        assert said.logprob is not None
        assert said.entropy is not None
        confidence = np.exp(said.logprob)
        figures += [
            Figure(f"{name}: correct", None, float((said.rank == 1).mean())),
            Figure(f"{name}: confidence below 0.9", None, float((confidence < 0.9).mean())),
            Figure(f"{name}: negative entropy below -0.5", None, float((said.entropy > 0.5).mean())),
        ]
        tenths = np.linspace(0, 1, 11)
        details[name] = {
            "confidence": np.histogram(confidence, tenths)[0].tolist(),
            "negative_entropy": np.quantile(-said.entropy, tenths).tolist(),
        }
    return Outcome(
        title="Figure 2 (a): the three metrics",
        scale="The first of the trainings. The paper shows curves and no numbers; Fashion-MNIST in place of SVHN.",
        figures=figures,
        details=details,
    )
