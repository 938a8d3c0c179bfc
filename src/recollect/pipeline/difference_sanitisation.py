"""Sanitising by difference: two models are trained on the halves of a corpus, and what only one of them knows goes.

Carlini et al. 2018, "The Secret Sharer", appendix F: LD(x) = |L_F(x) − L_G(x)|, L being log-perplexity in bits. What
occurs once is in one half only, so that one model finds it far more likely than the other. The records with the
*largest* differences are removed ("smallest" in the paper's evaluation is a misprint). What occurs several times may be
in both halves and is then missed; splitting by user keeps the copies of one user together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from recollect import labels
from recollect.audits.workspace import add_notes
from recollect.checks import check_between, check_one_of
from recollect.corpora.cohorts import Unit
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import build_cohorts, draw_halves, list_units
from recollect.corpora.sanitisation import Sanitisation, sanitise_by_scores
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.answers import Answers
from recollect.recipes.data.vocabulary import add_corpus_to_vocabulary
from recollect.recipes.fleet import Fleet, train_fleet
from recollect.recipes.layout_trial import WorkerLayout
from recollect.recipes.recipe import Recipe

Progress = Callable[[str, int, int | None], None]
"""Called with the current stage, how much is done, and how much there is."""
REASON = "is among the largest log-perplexity differences of two models trained on the halves"


@dataclass(frozen=True, kw_only=True)
class DifferenceSanitiser:
    """How a corpus is sanitised by the difference of two models."""

    recipe: Recipe
    share: float = 0.1
    """Which share of the records is removed; the paper's tenth."""
    per: Literal["token", "record"] = "token"
    """Whether log-perplexity is that of the mean token or of the whole record, as the paper has it for samples of one
    length. Of records that differ in length the long ones have the larger differences for their length alone."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_between(0, 1, share=self.share)
        check_one_of(("token", "record"), per=self.per)

    def __call__(
        self, corpus: Corpus, work: Path, *, layout: WorkerLayout | None = None, progress: Progress | None = None
    ) -> Sanitisation:
        """The corpus without the share of records that has the largest differences.

        Killed and called again with the same work folder, it resumes.

        Args:
            corpus: What to sanitise.
            work: The work folder, in which the two models and their answers are kept.
            layout: How the models are trained side by side; None to pick by a short trial.
            progress: Called regularly with the progress.
        """
        found = self.compute_differences(corpus, work, layout=layout, progress=progress)
        return sanitise_by_scores(corpus, found, share=self.share, reason=REASON)

    def compute_differences(
        self, corpus: Corpus, work: Path, *, layout: WorkerLayout | None = None, progress: Progress | None = None
    ) -> dict[str, float]:
        """LD(x) in bits, by record id; records in which neither model predicts a token have none."""
        report = progress or (lambda task, done, total: None)
        unit: Unit = "user" if corpus.summary.users else "record"
        members = draw_halves(list_units(corpus, unit), 2, seed=self.seed, name=labels.STREAM_SANITISE)
        fleet = Fleet(
            # a token that one model calls unknown and the other does not would be a difference of vocabularies
            recipe=add_corpus_to_vocabulary(self.recipe, corpus),
            corpus=corpus,
            cohorts=build_cohorts(corpus, members, unit=unit, seed=self.seed),
            seed=self.seed,
        )
        trained = train_fleet(fleet, work, layout=layout, progress=partial(report, "training on the halves"))
        for failure in trained.failures.values():
            raise failure.error
        first, second = (
            score_corpus(str(folder), corpus, work, progress=add_notes(report, f"scoring with model {name}"))
            for name, folder in trained.folders.items()
        )
        found: dict[str, float] = {}
        for records, answers in first.iter_blocks(corpus):
            first_bits, second_bits = self._compute_bits(answers), self._compute_bits(second.get_answers(records))
            found |= {
                r.id: abs(first_bits[r.digest] - second_bits[r.digest]) for r in records if r.digest in first_bits
            }
        return found

    def _compute_bits(self, answers: Answers) -> dict[str, float]:
        """The log-perplexity of each record that has tokens to predict, by digest."""
        assert answers.logprob is not None  # noqa: S101 - models that a recipe trains show all
        counts = np.diff(answers.offsets)
        owner = np.repeat(np.arange(len(answers)), counts)
        sums = -np.bincount(owner, weights=answers.logprob, minlength=len(answers)) / np.log(2)
        bits = sums / np.maximum(counts, 1) if self.per == "token" else sums
        return {answers.records[i]: float(bits[i]) for i in np.flatnonzero(counts)}
