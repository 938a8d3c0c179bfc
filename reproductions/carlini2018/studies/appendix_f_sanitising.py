"""Appendix F: records that one of two models, trained on the halves, knows far better than the other, are removed."""

from __future__ import annotations

from statistics import fmean

from laboratory import COUNTED, EPOCHS, TWO_PERCENT, Laboratory, small, spelling
from outcomes import Figure, Outcome

from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.sanitise import by_scores
from recollect.pipeline.sanitising import REASON, ByDifference
from recollect.recipes.reading import load_recipe
from recollect.recipes.trial import Layout

SHARE = 0.1
PARTITIONS = 2


def study(lab: Laboratory) -> Outcome:
    setting = small()
    corpus, manifests = lab.planted(lab.treebank("train", TWO_PERCENT), setting.plantings)
    recipe = spelling(load_recipe(setting.recipe, list(setting.changes)), manifests)
    (secret,) = Canaries.load(manifests[0]).planted[0].records
    before = lab.trained(setting)
    places = {}
    for per in ("symbol", "record"):
        for seed in range(PARTITIONS):
            compare = ByDifference(recipe=recipe, share=SHARE, per=per, seed=seed)
            found = compare.differences(corpus, lab.work, layout=Layout(workers=1, threads=lab.threads))
            places[f"{per} {seed}"] = fmean(value >= found[secret] for value in found.values())
            if per == "symbol" and seed == 0:
                cleaned = by_scores(corpus, found, share=SHARE, reason=REASON)
    after = lab.model(recipe, cleaned.corpus, lab.treebank("valid", 300), manifests, setting.seed)
    was, became = (lab.exposure(each.folder, COUNTED, manifests[0]) for each in (before, after))
    each = [place for name, place in places.items() if name.startswith("symbol")]
    return Outcome(
        title="Appendix F: sanitising by difference",
        scale=f"2 % of the treebank, {EPOCHS} epochs, {PARTITIONS} partitions instead of 100.",
        figures=[
            Figure(
                "place of the secret by difference per symbol, worst partition (share of records)", "≤ 0.1", max(each)
            ),
            Figure("share of partitions in which it is in the first tenth", 1.0, fmean(p <= SHARE for p in each)),
            Figure("exposure before, bits", None, was["exposure_bits"]),
            Figure("exposure after, bits (1.44 if never seen)", "none", became["exposure_bits"]),
            Figure("test loss before, nats", 1.18, lab.test_loss(before.folder)),
            Figure("test loss after, nats", 1.27, lab.test_loss(after.folder)),
        ],
        details={"places": places, "before": was, "after": became},
    )
