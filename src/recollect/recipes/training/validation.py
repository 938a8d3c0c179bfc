"""The loss on held-out records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from recollect import labels
from recollect.recipes.data.sequences import TrainingSequences
from recollect.recipes.training.update import compute_summed_loss
from recollect.streams import stream


@dataclass(frozen=True, kw_only=True)
class Validation:
    """Measures the mean loss of a model on the same sequences, masked alike each time."""

    model: torch.nn.Module
    sequences: TrainingSequences
    batch_size: int
    carries_state: bool = False
    """Whether the model's state continues from one batch to the next (parallel streams)."""

    def __call__(self) -> float:
        """Nats per predicted token; the model is left in the mode it was in."""
        device, training = next(self.model.parameters()).device, self.model.training
        lengths = self.sequences.lengths
        order = np.arange(len(lengths)) if self.carries_state else np.argsort(lengths, kind="stable")
        total = torch.zeros((), dtype=torch.float64, device=device)
        token_count, state = 0, None
        self.model.eval()
        with torch.inference_mode():
            for begin in range(0, len(order), self.batch_size):
                draws = partial(stream, 0, labels.STREAM_VALIDATION, begin)
                batch = self.sequences.build_batch(order[begin : begin + self.batch_size], draws).to(device)
                extra = {"past_key_values": state, "use_cache": True} if self.carries_state else {}
                output = self.model(**batch.inputs, **extra)
                state = output.past_key_values if self.carries_state else None
                total += compute_summed_loss(output.logits, batch.targets)
                token_count += batch.token_count
        self.model.train(training)
        return float(total) / max(1, token_count)
