"""Exposure (the paper's Figure 4) and membership during training, for our own loop and for `recollect.callbacks`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from recollect.audits.exposure.audit import ExposureAudit
from recollect.checks import check_at_least
from recollect.corpora.corpus import Corpus
from recollect.errors import NotEnoughData, StoreError
from recollect.files import add_checksum, make_scratch_folder, read_json, remove_checksum, write_json
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.answer_store.store import AnswerStore
from recollect.models.loading.local_models import load_from_memory
from recollect.models.model import Model
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.training.loop import EpochSummary
from recollect.signals.evidence import TARGET
from recollect.signals.loss import mean_logprob
from recollect.signals.roles import CANARIES
from recollect.stats.auc import auc

Row = dict[str, Any]


class ExposureTracker:
    """Measures the canaries at the end of each epoch.

    As a hook of `recollect.recipes.training.trainer.train` it adds `exposure_bits`, the highest of any planted secret,
    and `exposure_bits_planted_1` and so on, the mean by number of repetitions, to the learning curve. Every secret of
    every epoch goes into the file.
    """

    def __init__(
        self,
        canaries: Path,
        file: Path,
        *,
        every: int = 1,
        controls: bool = False,
        audit: ExposureAudit | None = None,
        work: Path | None = None,
    ) -> None:
        """Follow the canaries of a manifest.

        Args:
            canaries: The manifest that `recollect plant` wrote.
            file: Where the exposures of each epoch go, as JSON; a training that continues adds to it.
            every: After how many epochs each.
            controls: Whether the controls are written down too.
            audit: How exposure is measured; the default draws few and counts little, so that training stays fast.
            work: Where answers are kept; a folder that is thrown away if None.
        """
        check_at_least(1, every=every)
        self._canaries, self._file, self._every, self._controls = canaries, file, every, controls
        self._audit = audit or ExposureAudit(draws=512, max_steps=20_000)
        self._work = work

    def __call__(self, end: EpochSummary) -> dict[str, float] | None:
        """What the loop calls at the end of an epoch."""
        if end.epoch % self._every:
            return None
        losses = {name: end.curve[-1][name] for name in ("training_loss", "validation_loss")}
        return self.measure(load_from_memory(end.model, end.tokenizer, card=end.card_entries), end.epoch, losses)

    def measure(self, model: Model, epoch: float, losses: Row) -> dict[str, float]:
        """Measure a model and write it down: the highest exposure, and the mean by number of repetitions."""
        with make_scratch_folder(self._file.parent) as folder:
            plan = Plan(
                audit=self._audit,
                models={TARGET: model},
                files={CANARIES: self._canaries},
                work=self._work or folder,
            )
            result = run(plan)
        rows = [
            {name: row[name] for name in ("secret_id", "planted", "exposure_bits", "lower", "upper", "rank", "method")}
            for row in result.tables_in_memory["secrets"].to_pylist()
            if row["planted"] or self._controls
        ]
        earlier = [add_checksum(row) for row in self._read_history() if row["epoch"] < epoch]
        write_json(self._file, [*earlier, add_checksum({"epoch": epoch, **losses, "secrets": rows})])
        highest = max((row["exposure_bits"] for row in rows if row["planted"]), default=0.0)
        return {"exposure_bits": highest, **_average_by_repetitions(rows)}

    def _read_history(self) -> list[Row]:
        """What was written down before."""
        if not self._file.exists():
            return []
        try:
            return [remove_checksum(row) for row in read_json(self._file)]
        except (TypeError, ValueError) as error:
            raise StoreError(
                f"'{self._file}' is damaged: {error}.",
                do=f"Delete this folder and train the model again: '{self._file.parent}'.",
                code="exposure_by_epoch_damaged",
            ) from error


def _average_by_repetitions(rows: list[Row]) -> dict[str, float]:
    """The mean exposure by number of repetitions, as tracked in training."""
    found: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        found[row["planted"]].append(row["exposure_bits"])
    return {f"exposure_bits_planted_{times}": sum(bits) / len(bits) for times, bits in sorted(found.items())}


def measure_membership(model: Model, members: Corpus, held_out: Corpus, work: Path) -> dict[str, float]:
    """Track membership in training: the AUC of the loss, and the mean loss of either side.

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
    """The mean log-probability of each record whose membership is tracked."""
    found = dict[str, float]()
    for _, answers in store.iter_blocks(corpus):
        found |= mean_logprob(answers)
    return np.array(list(found.values()), dtype=np.float64)
