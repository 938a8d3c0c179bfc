"""Length-sorted batches under a token budget that follows from the machine and shrinks when memory runs out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recollect.errors import ModelError
from recollect.models.answer_store.batch_journal import BatchJournal, flatten_arrays, rebuild_arrays

Indices = NDArray[np.int64]
Found = TypeVar("Found")

MAX_TOKENS = 8192
"""More tokens at once make no machine faster, only fuller."""
MIN_TOKENS = 64
MEMORY_SHARE = 0.25
"""Of the memory that the weights leave free: the rest belongs to the corpus, the store and other processes."""
MAX_CPU_BYTES = 2**26
"""The most bytes in flight on a processor: with more, activations wait for the memory; with fewer, matrix products are
slower. docs/methods/benchmarks.md has the figures of both."""
MAX_CPU_WORK = 1.5e11
"""The most multiplications and additions of one batch on a processor: seconds, so that a kill loses no more."""
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def plan_batches(lengths: Sequence[int] | Indices, budget: int) -> list[Indices]:
    """Indices grouped so that items of similar length are padded together, longest first.

    The padded size of a batch (items × longest) is at most `budget`; an item longer than that goes alone.
    Longest first, because then memory runs out at once or never.

    >>> [batch.tolist() for batch in plan_batches([3, 9, 2, 3], 6)]
    [[1], [0, 3], [2]]
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    found, begin = [], 0
    while begin < len(order):
        longest = max(1, int(lengths[int(order[begin])]))
        end = begin + max(1, budget // longest)
        found.append(order[begin:end])
        begin = end
    return found


def pad_batch(sequences: Sequence[Indices], padding: int) -> tuple[Tensor, Tensor]:
    """Sequences as one table, filled up on the right, and the mask that is 0 where they are.

    >>> ids, mask = pad_batch([np.array([5, 6]), np.array([7])], padding=0)
    >>> ids.tolist(), mask.tolist()
    ([[5, 6], [7, 0]], [[1, 1], [1, 0]])
    """
    lengths = np.array([len(each) for each in sequences])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(mask.shape, padding, dtype=np.int64)
    ids[mask] = np.concatenate(sequences)
    return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))


def compute_token_budget(*, per_token: int, room: float) -> int:
    """How many tokens a batch may have: a power of two, the same in every run on the same machine.

    No trial decides it, because the numbers of a batch depend in their last digits on its shape, and a run that
    is resumed must end with the same bytes.

    Args:
        per_token: Bytes one more token needs while it passes through the model.
        room: Bytes that all of them may take.

    >>> compute_token_budget(per_token=2**17, room=2**28)
    2048
    """
    fitting = int(max(0.0, room) // max(1, per_token))
    return min(MAX_TOKENS, max(MIN_TOKENS, 1 << max(0, fitting.bit_length() - 1)))


def measure_batch_memory(device: torch.device) -> int:
    """Bytes of memory that batches may be planned for: the device's, within what the container allows."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    allowed = [path.read_text().strip() for path in _CGROUP_LIMITS if path.is_file()]
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([installed, *(int(limit) for limit in allowed if limit.isdigit())])


@dataclass
class TokenBudget:
    """A number of tokens that halves whenever memory runs out, and stays so."""

    tokens: int
    journal: BatchJournal | None = None
    """Where finished batches are kept, while a shard is computed."""

    @classmethod
    def of(cls, network: Any, *, vocabulary: int = 0) -> TokenBudget:
        """The budget for a Hugging Face model where it is.

        Args:
            network: On its device and in its precision.
            vocabulary: The width of its logits, if it makes them for every token; 0 if it does not.
        """
        config = network.config.get_text_config()
        # inputs, queries, keys, values and the fourfold width between two layers, some of them twice
        width = 24 * int(getattr(config, "hidden_size", None) or 1024)
        weights = sum(each.numel() * each.element_size() for each in network.parameters())
        room = MEMORY_SHARE * (measure_batch_memory(network.device) - weights)
        fitting = compute_token_budget(per_token=width * network.dtype.itemsize + 2 * 4 * vocabulary, room=room)
        if network.device.type != "cpu":
            return cls(fitting)
        parameters = sum(each.numel() for each in network.parameters())
        quick = compute_token_budget(per_token=2 * parameters, room=MAX_CPU_WORK)
        return cls(
            min(fitting, quick, compute_token_budget(per_token=width * network.dtype.itemsize, room=MAX_CPU_BYTES))
        )

    def map_batches(
        self,
        lengths: Sequence[int] | Indices,
        score: Callable[[Indices], Found],
        *,
        build: Callable[..., Any] | Sequence[Callable[..., Any] | None] | None = None,
    ) -> Iterator[tuple[Indices, Found]]:
        """Score batch by batch; yields the indices of each batch with what was found for them.

        A batch that does not fit into memory is split and scored again. One that the journal holds is not scored.

        Args:
            lengths: The length of each item.
            score: Scores some items.
            build: Makes what `score` gives of the arrays that the journal holds; see `batch_journal.rebuild`.

        Raises:
            ModelError: Not even a single item fits into memory.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        waiting = plan_batches(sizes, self.tokens)[::-1]
        while waiting:
            batch = waiting.pop()
            try:
                found = self._score(batch, sizes, score, build)
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                self._shrink(sizes[batch], error)
                left = np.concatenate([batch, *waiting[::-1]])
                waiting = [left[piece] for piece in plan_batches(sizes[left], self.tokens)][::-1]
            else:
                yield batch, found

    def _score(self, batch: Indices, sizes: Indices, score: Callable[[Indices], Found], build: Any) -> Found:
        """What is found for a batch: in the journal, or else by scoring it."""
        if self.journal is None:
            return score(batch)
        stored = self.journal.find(batch, sizes)
        if stored is None:
            found = score(batch)
            self.journal.add(batch, sizes, flatten_arrays(found))
        else:
            found = rebuild_arrays(stored, build)
        self.journal.report(batch, total=len(sizes), tokens=int(sizes[batch].sum()) if stored is None else 0)
        return found

    def _shrink(self, sizes: Indices, error: BaseException) -> None:
        """Halve the budget until the batch that failed would be cut."""
        if len(sizes) == 1:
            raise ModelError(
                f"There is not enough memory to read {int(sizes[0])} tokens at once.",
                do="Use a shorter window, a lower precision or a machine with more memory.",
                code="out_of_memory",
            ) from error
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.tokens = max(1, min(self.tokens, len(sizes) * int(sizes.max())) // 2)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out over a batch, on a GPU or on the CPU.

    >>> is_out_of_memory(RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."))
    True
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error)
    return "not enough memory" in text or "can't allocate memory" in text or "out of memory" in text
