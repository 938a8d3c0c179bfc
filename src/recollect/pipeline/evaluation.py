"""How good a model is: accuracy, perplexity and bits per character, with intervals by user.

Song & Shmatikov 2019, section 4.2: accuracy is the share of tokens that the model finds most likely, perplexity
2 ** (−mean log2 p), which is exp(−mean ln p); tokens that the vocabulary does not know count like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData
from recollect.models.answer_store.store import AnswerStore
from recollect.models.answers import Answers
from recollect.stats.intervals import Estimate, Interval
from recollect.stats.ratios import compute_ratio_interval

Floats = NDArray[np.float64]
METHOD = "jackknife over users, Student's t"


@dataclass
class Totals:
    """What is added up for each owner of records."""

    tokens: float = 0
    likeliest: float = 0
    unknown: float = 0
    nats: float = 0
    characters: float = 0

    def add(self, record: Record, answers: Answers, rows: slice) -> None:
        """Take one record's answers into account in an evaluation."""
        ranks = answers.rank[rows]
        if not len(ranks):
            return
        self.tokens += len(ranks)
        self.likeliest += int((ranks == 1).sum())
        self.unknown += int((~answers.known[rows]).sum())
        if answers.logprob is not None:
            self.nats -= float(answers.logprob[rows].sum(dtype=np.float64))
        # what is before the first predicted token was given, not predicted
        self.characters += len(record.scored_text) - int(answers.start[rows].min(initial=2**31 - 1))


def evaluate(store: AnswerStore, corpus: Corpus) -> dict[str, Estimate]:
    """How well the model behind these answers predicts the corpus, by name of the number.

    Args:
        store: The model's answers to all records of the corpus.
        corpus: The scored corpus.
    """
    owners: dict[str, Totals] = {}
    shown = True
    for records, answers in store.iter_blocks(corpus):
        shown = shown and answers.logprob is not None and not np.isnan(answers.logprob).any()
        for record in records:
            owners.setdefault(record.owner, Totals()).add(record, answers, answers.get_rows(record.digest))
    table = {name: np.array([getattr(totals, name) for totals in owners.values()]) for name in Totals().__dict__}
    if not table["tokens"].sum():
        raise NotEnoughData(
            f"{corpus.name} has no token that the model had to predict.",
            do="Give longer texts.",
            code="nothing_predicted",
        )
    return _estimate_totals(table, shown=shown, written=corpus.summary.kind != "labelled")


def _estimate_totals(table: dict[str, Floats], *, shown: bool, written: bool) -> dict[str, Estimate]:
    """The numbers of an evaluation that these totals support."""
    found = {
        "accuracy": _estimate_ratio(table, "likeliest", "tokens", is_share=True),
        "unknown_share": _estimate_ratio(table, "unknown", "tokens", is_share=True),
    }
    if shown:
        found["nats_per_token"] = _estimate_ratio(table, "nats", "tokens")
        found["perplexity"] = _estimate_ratio(table, "nats", "tokens", then=np.exp)
    if shown and written:
        found["bits_per_character"] = _estimate_ratio(table, "nats", "characters", then=lambda nats: nats / np.log(2))
    return found


def _estimate_ratio(
    table: dict[str, Floats],
    numerator: str,
    denominator: str,
    *,
    is_share: bool = False,
    then: Callable[[Floats], Floats] = np.asarray,
) -> Estimate:
    """One total of an evaluation over another, over all owners, with an interval by owner."""
    numerators, denominators = table[numerator], table[denominator]
    nonzero = denominators > 0
    numerators, denominators = numerators[nonzero], denominators[nonzero]
    value = float(then(numerators.sum() / denominators.sum()))
    counts = {"tokens": int(table["tokens"].sum()), "users": len(numerators)}
    try:
        interval = compute_ratio_interval(numerators, denominators, is_share=is_share)
        with np.errstate(over="ignore"):
            low, high = then(np.array([interval.low, interval.high])).tolist()
    except NotEnoughData as refusal:
        return Estimate(value=value, interval=None, n=counts, method="total over total", why_no_interval=refusal.found)
    if not np.isfinite(high):
        why = "The upper limit is too large to be written as a number: too few users, who differ too much."
        return Estimate(value=value, interval=None, n=counts, method="total over total", why_no_interval=why)
    return Estimate(value=value, interval=Interval(low, high, interval.confidence), n=counts, method=METHOD)
