"""Table 6: a translation model; the secret stands in source and target.

Candidates are scored with the candidate in both. A model that merely copies digits from source to target would find
every candidate likely, planted or not: it would show in controls, whose exposure must stay near 1.44 bits on average.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from common.outcomes import Figure, Outcome
from laboratory import Laboratory, first, spelling

from recollect.audits.exposure.audit import ExposureAudit
from recollect.corpora import read_corpus
from recollect.corpora.canaries.insertion import CanarySettings
from recollect.corpora.corpus import Corpus
from recollect.recipes.recipe_file import load_recipe

DIGITS = " ".join(["{digits:1}"] * 9)
PLANTING = CanarySettings(
    format=f"my social security number is {DIGITS}",
    source_format=f"mon numéro de sécurité sociale est {DIGITS}",
    secrets=3,
    repeat=(1, 2, 4),
    controls=20,
)
PAPER = {1: 10, 2: 21, 4: 33}
PAIRS = 2500
CHANGES = ["training.epochs=15", "training.learning_rate=0.005", "training.batch_size=32", "model.dropout=0.2"]
AUDIT = ExposureAudit(method="sampled", draws=4096)


def study(lab: Laboratory) -> Outcome:
    pairs = turned(first(read_corpus(lab.file("multi30k_enfr/train.jsonl.gz")), PAIRS))
    validation = turned(first(read_corpus(lab.file("multi30k_enfr/val.jsonl.gz")), 300))
    planted, manifests = lab.planted(pairs, (PLANTING,))
    recipe = spelling(load_recipe("seq2seq-attention", CHANGES), manifests)
    model = lab.model(recipe, planted, validation, manifests, 0)
    rows = lab.exposures(model.folder, AUDIT, manifests[0])
    figures = []
    for times, printed in PAPER.items():
        group = [row for row in rows if row["planted"] == times]
        figures += [
            Figure(
                f"inserted {times}×: mean estimated exposure, bits",
                printed,
                fmean(r["skew_normal_bits"] for r in group),
            ),
            Figure(f"inserted {times}×: mean sampled exposure, bits", None, fmean(r["exposure_bits"] for r in group)),
        ]
    controls = [row["exposure_bits"] for row in rows if row["planted"] == 0]
    figures.append(Figure("20 controls: mean exposure, bits", "1.44 by chance", fmean(controls)))
    return Outcome(
        title="Table 6: translation",
        scale=f"{PAIRS:,} pairs of captions, French to English, instead of 100,000 of talks; 128 units; three secrets "
        "of each kind in one model.",
        figures=figures,
        details={"secrets": rows},
    )


def turned(corpus: Corpus) -> Corpus:
    """The pairs the other way round: the secret is looked for in the English."""
    return Corpus.of((replace(r, source=r.target, target=r.source) for r in corpus), name=f"{corpus.name}, turned")
