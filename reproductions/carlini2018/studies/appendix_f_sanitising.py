"""Appendix F: records that one of two models, trained on the halves, knows far better than the other, are removed."""

from __future__ import annotations

from statistics import fmean

from common.outcomes import Figure, Outcome
from laboratory import COUNTED, TEN, TWO_PERCENT, Laboratory, after_ten, small, spelling

from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.sanitisation import sanitise_by_scores
from recollect.pipeline.difference_sanitisation import REASON, DifferenceSanitiser
from recollect.recipes.layout_trial import WorkerLayout
from recollect.recipes.recipe_file import load_recipe

SHARE = 0.1


def study(lab: Laboratory) -> Outcome:
    setting = small(epochs=TEN)
    corpus, manifests = lab.planted(lab.treebank("train", TWO_PERCENT), setting.plantings)
    recipe = spelling(load_recipe(setting.recipe, list(setting.changes)), manifests)
    (secret,) = Canaries.load(manifests[0]).planted[0].records
    before, _ = after_ten(lab)
    places, cleaned = {}, {}
    for per in ("token", "record"):
        compare = DifferenceSanitiser(recipe=recipe, share=SHARE, per=per)
        found = compare.compute_differences(corpus, lab.work, layout=WorkerLayout(workers=1, threads=lab.threads))
        places[per] = fmean(value >= found[secret] for value in found.values())
        cleaned[per] = sanitise_by_scores(corpus, found, share=SHARE, reason=REASON).corpus
    after = lab.model(recipe, cleaned["token"], lab.treebank("valid", 300), manifests, setting.seed).folder
    was, became = (lab.exposure(each, COUNTED, manifests[0]) for each in (before, after))
    return Outcome(
        title="Appendix F: sanitising by difference",
        scale=f"2 % of the treebank, {TEN} epochs, one partition instead of 100.",
        figures=[
            Figure("share of records with a difference per token as large as the secret's", "≤ 0.1", places["token"]),
            Figure("share of records with a difference in all as large as the secret's", "≤ 0.1", places["record"]),
            Figure("exposure before, bits", None, was["exposure_bits"]),
            Figure("exposure after, bits (1.44 if never seen)", "none", became["exposure_bits"]),
            Figure("test loss before, nats", 1.18, lab.test_loss(before)),
            Figure("test loss after, nats", 1.27, lab.test_loss(after)),
        ],
        details={"places": places, "before": was, "after": became},
    )
