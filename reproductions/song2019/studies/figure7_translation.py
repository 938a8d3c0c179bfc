"""Figure 7 of translation: how accuracy on training texts falls when hidden units are silenced."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from comparing import REVISION
from laboratory import MORE_TALKS, Laboratory
from studies.figure7_ablation import DRAWS, ablated

from recollect.recipes.recipe_file import load_recipe

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def study(lab: Laboratory) -> Outcome:
    return Outcome(
        title="Figure 7: silenced units, translation",
        scale=f"{MORE_TALKS} talks of 4 sentences (paper: some 117), without dropout, mean of {DRAWS} random choices. "
        "The paper prints curves.",
        figures=lab.keep_figures("figure7_translation", "translation", REVISION, lambda: measured(lab)),
    )


def measured(lab: Laboratory) -> list[Figure]:
    """The figures of the one target."""
    members = lab.pair("translation").people.members
    folder = lab.model(load_recipe("seq2seq-attention", ["model.dropout=0"]), members)
    return ablated(lab, folder, members, SHARES)[0]
