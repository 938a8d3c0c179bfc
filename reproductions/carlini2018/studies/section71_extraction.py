"""Section 7.1 and Table 9: four ways to draw a memorised secret out, and what exact rank and proof cost.

The 16-digit card number was planted five times, so that it is memorised as well.
"""

from __future__ import annotations

from dataclasses import replace

from common.outcomes import Figure, Outcome
from laboratory import EPOCHS, NUMBER, Laboratory, Row, base_models, secret_of, small

from recollect.audits.exposure.audit import ExposureAudit
from recollect.audits.exposure.extraction import ExtractionAudit
from recollect.corpora.canaries.insertion import CanarySettings

EXACT = ExposureAudit(method="exact", draws=100, max_steps=1_000_000)
SEARCH = ExtractionAudit(format=NUMBER, top=1, max_steps=1_000_000, show_text=True)
BEGINNINGS = sum(10**digits for digits in range(9))
"""Of nine digits: what brute force must read; the last digit is known from what stands before it."""
BEAMS = (1, 10, 100, 1000, 10_000)
CARD = CanarySettings(format="my card number is {card}", secrets=1, repeat=(5,), controls=0)


def study(lab: Laboratory) -> Outcome:
    model = most_exposed(lab)
    rank = lab.measure(model.folder, EXACT, model.canaries[0])
    secret = secret_of(model.canaries[0])
    best = searched(lab, model.folder, SEARCH, secret)
    twenty = searched(lab, model.folder, replace(SEARCH, top=20), secret)
    beams = {width: searched(lab, model.folder, replace(SEARCH, method="beam", width=width), secret) for width in BEAMS}
    drawn = searched(lab, model.folder, replace(SEARCH, method="sampling"), secret)
    brute = searched(lab, model.folder, replace(SEARCH, method="brute-force", max_steps=50_000), secret)
    card = lab.trained(small(plantings=(CARD,)))
    card_rank = lab.measure(card.folder, EXACT, card.canaries[0])
    card_best = searched(lab, card.folder, replace(SEARCH, format=CARD.format), secret_of(card.canaries[0]))
    hours = BEGINNINGS / (brute["steps"] / brute["seconds"]) / 3600
    found = [width for width in BEAMS if beams[width]["found"]]
    return Outcome(
        title="Section 7.1, Table 9: drawing a memorised secret out",
        scale=f"A model of 2 % of the treebank after {EPOCHS} epochs, one secret planted once; one thread.",
        figures=[
            Figure("9 digits: rank", 1, rank["rows"][0]["rank"]),
            Figure("9 digits: steps to count the rank exactly", None, rank["rows"][0]["steps"]),
            Figure("9 digits: seconds to count the rank exactly", None, rank["seconds"]),
            Figure("brute force: hours for 10⁹ secrets, from the first 50,000 steps", 4, hours),
            Figure("sampling: secret among 10⁶ steps' draws (1 = yes)", "90 % in 10⁷ draws", int(drawn["found"])),
            Figure("beam: narrowest width that found it", "rarely found at 10⁴", min(found) if found else "none"),
            Figure("shortest path: steps, with proof", 1e5, best["steps"]),
            Figure("shortest path: seconds, with proof", None, best["seconds"]),
            Figure("shortest path: found the planted secret (1 = yes)", 1, int(best["found"] and best["proven"] == 1)),
            Figure("likeliest 20 (Table 9): steps, with proof", None, twenty["steps"]),
            Figure("likeliest 20: bits of the first", 14.63, twenty["rows"][0]["log_perplexity_bits"]),
            Figure("likeliest 20: bits of the second", 18.56, twenty["rows"][1]["log_perplexity_bits"]),
            Figure("16-digit card: rank", None, card_rank["rows"][0]["rank"]),
            Figure("16-digit card: steps of shortest path, with proof", None, card_best["steps"]),
            Figure(
                "16-digit card: seconds of rank and shortest path", None, card_rank["seconds"] + card_best["seconds"]
            ),
            Figure("16-digit card: found (1 = yes)", None, int(card_best["found"] and card_best["proven"] == 1)),
        ],
        details={"beams": beams, "sampling": drawn, "brute force": brute, "twenty": twenty["rows"], "card": card_rank},
    )


def most_exposed(lab: Laboratory):
    """The model that memorised its secret best: the first whose secret is the likeliest, or has the lowest rank."""
    models = base_models(lab)
    return min(models, key=lambda model: lab.exposure(model.folder, EXACT, model.canaries[0])["rank"])


def searched(lab: Laboratory, folder, audit: ExtractionAudit, secret: str) -> Row:
    """What a search found, and whether the planted secret is first."""
    result = lab.measure(folder, audit)
    return {**result, "found": bool(result["rows"]) and result["rows"][0]["secret"] == secret}
