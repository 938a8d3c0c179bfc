"""Section 4.1: after one epoch, is a planted secret likelier than one that was not planted?

Each model has its own secret. As in the paper its log-perplexity is compared with that of another secret, here that of
the next model; besides, its rank among random draws is tested.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from common.outcomes import Figure, Outcome
from laboratory import NUMBER, Laboratory, Row, secret_of, small

from recollect.audits.exposure.audit import ExposureAudit
from recollect.stats.significance import binomial_p

MODELS = 20
AUDIT = ExposureAudit(method="sampled", draws=1024)


def study(lab: Laboratory) -> Outcome:
    rows = [measured(lab, seed) for seed in range(MODELS)]
    wins = sum(row["planted_bits"] < row["other_bits"] for row in rows)
    return Outcome(
        title="Section 4.1: planted against not planted, after one epoch",
        scale=f"{MODELS} models on 2 % of the treebank instead of 100 on all of it.",
        figures=[
            Figure("share of models in which the planted secret is likelier", 0.88, wins / MODELS),
            Figure("p-value of that share", "9.6e-16 (printed: < 1e-30)", binomial_p(wins, MODELS, 0.5)),
            Figure(
                "mean exposure after one epoch, bits (1.44 if not planted)",
                3,
                fmean(row["exposure_bits"] for row in rows),
            ),
        ],
        details={"models": rows},
    )


def measured(lab: Laboratory, seed: int) -> Row:
    """What one model makes of its own secret and of the next model's."""
    trained = lab.trained(small(seed=seed, epochs=1))
    other = secret_of(lab.trained(small(seed=(seed + 1) % MODELS, epochs=1)).canaries[0])
    own = lab.exposure(trained.folder, AUDIT, trained.canaries[0])
    next_one = lab.exposure(trained.folder, replace(AUDIT, format=NUMBER, secrets=(other,)))
    return {
        "planted_bits": own["log_perplexity_bits"],
        "other_bits": next_one["log_perplexity_bits"],
        "exposure_bits": own["exposure_bits"],
        "p_value": own["p_value"],
    }
