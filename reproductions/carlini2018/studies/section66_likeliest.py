"""Section 6.6: how often is the planted secret the likeliest of all? And is the model smaller than its data?"""

from __future__ import annotations

import gzip
from statistics import fmean

from common.outcomes import Figure, Outcome
from laboratory import COUNTED, EPOCHS, Laboratory, base_models


def study(lab: Laboratory) -> Outcome:
    models = base_models(lab)
    rows = [lab.exposure(model.folder, COUNTED, model.canaries[0]) for model in models]
    text = "\n".join(record.text or "" for record in lab.treebank("train", 42068)).encode()
    return Outcome(
        title="Section 6.6: how often the planted secret is the likeliest",
        scale=f"{len(models)} models on 2 % of the treebank, {EPOCHS} epochs.",
        figures=[
            Figure(
                "share of models in which the secret is the likeliest", 0.8, fmean(row["rank"] == 1 for row in rows)
            ),
            Figure(
                "share of models in which it is among the likeliest ten", 1.0, fmean(row["rank"] <= 10 for row in rows)
            ),
            Figure(
                "size of the model at 8 bits per weight, MB",
                0.6,
                (models[0].folder / "model.safetensors").stat().st_size / 4e6,
            ),
            Figure("size of the whole treebank when compressed, MB", 1.7, len(gzip.compress(text, 9)) / 1e6),
        ],
        details={"secrets": rows},
    )
