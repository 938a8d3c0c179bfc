"""Figure 2: the log-perplexities of random secrets, and the paper's skew-normal curve fitted to them."""

from __future__ import annotations

import numpy as np
from common.outcomes import Figure, Outcome
from laboratory import Laboratory, base_models

from recollect.audits.exposure.audit import ExposureAudit
from recollect.stats.exposure import fit_skew_normal
from recollect.streams import stream

DRAWS = 20_000
BINS = 40


def study(lab: Laboratory) -> Outcome:
    rows = []
    for number, model in enumerate(base_models(lab)[:2]):
        draws = np.array(lab.draws(model.folder, ExposureAudit(method="sampled", draws=DRAWS), model.canaries[0]))
        rng = stream(0, "figure 2", str(number))
        few = fit_skew_normal(draws[:1000], rng=rng, refits=1)
        curve = fit_skew_normal(draws, rng=rng, refits=1)
        counts, edges = np.histogram(draws, BINS)
        rows.append(
            {
                "mean_bits": float(draws.mean()),
                "sd_bits": float(draws.std()),
                "shape": curve.shape,
                "location": curve.location,
                "scale": curve.scale,
                "p_at_1000": few.goodness_of_fit_p,
                "p_at_20000": curve.goodness_of_fit_p,
                "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
            }
        )
    first = rows[0]
    return Outcome(
        title="Figure 2: the curve fitted to the log-perplexities of random secrets",
        scale=f"{DRAWS:,} draws instead of all 10⁹ secrets; half are fitted, half tested.",
        figures=[
            Figure("mean log-perplexity of random secrets, bits", None, first["mean_bits"]),
            Figure("standard deviation, bits", None, first["sd_bits"]),
            Figure("skew (shape) of the curve", None, first["shape"]),
            Figure("Kolmogorov–Smirnov p at 500 tested draws", "> 0.1 at 10⁶", first["p_at_1000"]),
            Figure("Kolmogorov–Smirnov p at 10,000 tested draws", "< 0.01 at 10⁹", first["p_at_20000"]),
        ],
        details={"models": rows},
    )
