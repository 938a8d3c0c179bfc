"""Membership during training: how well the loss separates records of the training set from held-out ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recollect.corpora.corpus import Corpus
from recollect.errors import NotEnoughData
from recollect.models.model import Model
from recollect.models.scoring import score_corpus
from recollect.models.store import AnswerStore
from recollect.signals.loss import mean_logprob
from recollect.stats.auc import auc


def measure_membership(model: Model, members: Corpus, held_out: Corpus, work: Path) -> dict[str, float]:
    """The area under the ROC curve of the loss, and the mean loss of either side.

    It is no audit: nothing is matched or guarded, because members and held-out records are the user's own split. 0.5
    is no better than guessing.

    Args:
        model: As it is now.
        members: Records of the training set.
        held_out: Records like them that are not in it.
        work: Where scores are kept.

    Raises:
        NotEnoughData: One side has no record with a token to predict.
    """
    sides = [_average_logprobs(score_corpus(model, corpus, work), corpus) for corpus in (members, held_out)]
    for side, corpus in zip(sides, (members, held_out), strict=True):
        if not len(side):
            raise NotEnoughData(
                f"{corpus.name} has no record with a token to predict.", do="Give longer records.", code="no_tokens"
            )
    return {
        "membership_auc": auc(*sides).value,
        "member_loss": -float(sides[0].mean()),
        "held_out_loss": -float(sides[1].mean()),
    }


def _average_logprobs(store: AnswerStore, corpus: Corpus) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The mean log-probability of each record that has tokens."""
    found = dict[str, float]()
    for _, answers in store.iter_blocks(corpus):
        found |= mean_logprob(answers)
    return np.array(list(found.values()), dtype=np.float64)
