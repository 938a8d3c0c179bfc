"""What each training sequence would change: its own gradient, for record-level differential privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from recollect import labels
from recollect.recipes.private.gradients import check_equal, compute_all_at_once, get_trained_parameters
from recollect.recipes.sequences import IGNORED, Batch, Sequences
from recollect.recipes.update import Step, compute_token_losses
from recollect.streams import stream

_MAX_BYTES = 2**28
"""How much memory the per-record gradients of one part may take."""


@dataclass(kw_only=True)
class RecordGradients:
    """The gradient of each drawn sequence's loss, which is the mean over the tokens it predicts.

    A step's sequences are handled in parts of similar length that fit into memory; a sum does not mind.
    """

    model: nn.Module
    sequences: Sequences
    seed: int
    rows_at_once: int | None = None
    """How many sequences make a part; None for as many as fit into 256 MB."""

    def check(self) -> None:
        """Refuse a model in which two records change each other's gradients; tried on the two longest."""
        longest = np.argsort(self.sequences.lengths, kind="stable")[-2:]
        batch = self.sequences.build_batch(longest, partial(stream, self.seed, labels.STREAM_GRADIENT_CHECK))
        batch = batch.to(next(self.model.parameters()).device)
        check_equal(self.model, lambda piece: compute_record_losses(self.model, piece)[0], batch)

    def iter_contributions(self, step: Step) -> Iterator[tuple[Tensor, int]]:
        """Leave part after part in the parameters' `grad_sample`; yields each part's summed loss and its tokens."""
        rows, device = self._count_rows, next(self.model.parameters()).device
        indices = step.indices[np.argsort(self.sequences.lengths[step.indices], kind="stable")]
        for at in range(0, len(indices), rows):
            draws = partial(stream, self.seed, labels.STREAM_BATCH, step.number, at)
            batch = self.sequences.build_batch(indices[at : at + rows], draws).to(device)
            yield self._compute_gradients(batch)

    def _compute_gradients(self, batch: Batch) -> tuple[Tensor, int]:
        """The gradients of one part."""
        total = torch.zeros((), device=batch.targets.device)

        def losses() -> Tensor:
            each, summed = compute_record_losses(self.model, batch)
            total.add_(summed)
            return each

        compute_all_at_once(self.model, losses, records=len(batch.targets))
        return total, batch.token_count

    @property
    def _count_rows(self) -> int:
        """How many sequences make a part."""
        if self.rows_at_once is not None:
            return self.rows_at_once
        size = sum(parameter.numel() * parameter.element_size() for parameter in get_trained_parameters(self.model))
        return max(1, _MAX_BYTES // size)


def compute_record_losses(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Each record's mean loss over its tokens (zero if it predicts none), and the sum over all tokens."""
    rows = len(batch.targets)
    nats = compute_token_losses(model(**batch.inputs).logits, batch.targets).view(rows, -1)
    counts = (batch.targets != IGNORED).view(rows, -1).sum(1)
    return nats.sum(1) / counts.clamp(min=1), nats.detach().sum()
