"""Exposure during training, as in the paper's Figure 4: a hook for our loop, and what `recollect.callbacks` uses."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from recollect.audits.exposure.audit import ExposureAudit
from recollect.audits.exposure.view import CANARIES
from recollect.checks import check_at_least
from recollect.errors import StoreError
from recollect.files import add_checksum, make_scratch_folder, read_json, remove_checksum, write_json
from recollect.models.local_models import load_from_memory
from recollect.models.model import Model
from recollect.pipeline.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.loop import EpochSummary
from recollect.signals.evidence import TARGET

Row = dict[str, Any]


class ExposureFollower:
    """Measures the canaries at the end of each epoch.

    As a hook of `recollect.recipes.trainer.train` it adds `exposure_bits`, the highest of any planted secret, and
    `exposure_bits_planted_1` and so on, the mean by number of repetitions, to the learning curve. Every secret of every
    epoch goes into the file.
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
    """The mean exposure by number of repetitions."""
    found: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        found[row["planted"]].append(row["exposure_bits"])
    return {f"exposure_bits_planted_{times}": sum(bits) / len(bits) for times, bits in sorted(found.items())}
