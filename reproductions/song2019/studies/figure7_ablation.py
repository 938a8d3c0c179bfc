"""Figure 7: how accuracy on training texts falls when hidden units are silenced."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common.outcomes import Figure, Outcome
from frequencies import asked_words
from laboratory import FEW, WORDS, Laboratory, Row
from safetensors.numpy import load_file, save_file

from recollect.corpora.corpus import Corpus
from recollect.recipes.recipe_file import load_recipe
from recollect.streams import stream

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
DRAWS = 3
"""Random choices of silenced units for each share."""


def silenced(lab: Laboratory, folder: Path, share: float, draw: int) -> Path:
    """The model without the weights that lead from some hidden units to the words: these units are as good as zero."""
    out = lab.work / "silenced" / f"{folder.name}-{share:g}-{draw}"
    if not out.exists():
        copied = Path(shutil.copytree(folder, out.with_name(f"{out.name}.partly"), dirs_exist_ok=True))
        weights = load_file(copied / "model.safetensors")
        units = weights["lm_head.weight"].shape[1]
        chosen = stream(0, "silenced", share, draw).permutation(units)[: round(share * units)]
        weights["lm_head.weight"][:, chosen] = 0.0
        save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
        (copied / "card.json").unlink()  # which is of the model as it was trained
        copied.rename(out)
    return out


def study(lab: Laboratory) -> Outcome:
    members = lab.few().members
    folder = lab.model(load_recipe(WORDS, ["model.dropout=0"]), members)
    figures, details = ablated(lab, folder, members, SHARES)
    return Outcome(
        title="Figure 7: silenced units",
        scale=f"{FEW} users (paper: 300), without dropout, mean of {DRAWS} random choices; Reddit. The paper prints "
        "curves.",
        figures=figures,
        details=details,
    )


def ablated(lab: Laboratory, folder: Path, members: Corpus, shares: Sequence[float]) -> tuple[list[Figure], Row]:
    """Accuracy on training texts when these shares of the units are silenced, of frequent words and of the rest."""
    figures, details = [], {}
    for share in shares:
        rows = []
        for draw in range(DRAWS if share else 1):
            words = list(asked_words(lab, silenced(lab, folder, share, draw), members))
            counts = Counter(word for word, _, _ in words)
            frequent = {word for word, _ in counts.most_common(len(counts) // 10)}
            hits = [(word in frequent, rank == 1) for word, rank, _ in words]
            rows.append([np.mean([hit for often, hit in hits if often == which]) for which in (True, False)])
        often, seldom = np.mean(rows, axis=0).tolist()
        details[f"{share:.0%}"] = {"frequent": often, "rest": seldom}
        figures += [
            Figure(f"{share:.0%} silenced: accuracy, most frequent tenth of the words", None, often),
            Figure(f"{share:.0%} silenced: accuracy, the rest", None, seldom),
        ]
    return figures, details
