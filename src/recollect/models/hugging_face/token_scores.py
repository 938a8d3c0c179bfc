"""The numbers of each predicted token, read from a model's hidden states without a table as wide as the vocabulary.

The output layer is the widest part of a language model. It is applied only to the rows that are requested, a few
hundred at a time, into buffers that are used again; ranks are counted and sums taken in the same sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from recollect.errors import ModelError
from recollect.models.model import Sampling

MAX_ROWS = 512
"""Rows given to the output layer at once: fewer and the matrix product slows down, more and nothing is gained."""
BUFFER_BYTES = 2**28
"""The most that one buffer of logits may hold, whatever the size of the vocabulary."""
WIDENED_BYTES = 2**26
"""How much of an output layer in half precision is converted to single precision at once."""
MAX_SWEEP_VALUES = 2**22
"""Logits swept at once: few enough to stay near the processor, enough that its threads seldom wait for each other."""
_FLOOR = {torch.float32: -87.0, torch.float64: -700.0}
"""Log-probabilities below the most likely token's by more than this count as this: exp() of less is no normal
number."""
_BLOCK = 128
"""Neighbouring tokens of which only the highest is looked at first, when the top ones are searched for."""
_TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}


@dataclass(frozen=True, kw_only=True)
class TokenScores:
    """The numbers of some tokens, in the order given; float64 only if the model computes in it."""

    rank: NDArray[np.int32]
    logprob: NDArray[np.floating[Any]]
    entropy: NDArray[np.floating[Any]]
    logprob_std: NDArray[np.floating[Any]]
    kept_mass: NDArray[np.floating[Any]]
    """What sampling keeps of the distribution; see `Answers`."""

    @classmethod
    def allocate(cls, rows: int, *, double: bool) -> TokenScores:
        """Room for the numbers of so many tokens."""
        kind = np.float64 if double else np.float32
        names = ("logprob", "entropy", "logprob_std", "kept_mass")
        return cls(rank=np.empty(rows, np.int32), **dict(zip(names, np.empty((4, rows), kind), strict=True)))

    def put(self, indices: NDArray[np.int64], found: TokenScores) -> None:
        """Write what was found for some of the tokens into their places."""
        for name, column in vars(found).items():
            getattr(self, name)[indices] = column


@torch.inference_mode()
def score_tokens(logits: Tensor, token_ids: Tensor, sampling: Sampling = Sampling()) -> TokenScores:  # noqa: B008 - frozen
    """Rank, log-probability, entropy, logprob_std and kept mass of the true token in each row of logits.

    Args:
        logits: One row per prediction [rows, vocabulary].
        token_ids: The true token of each row [rows].
        sampling: Of which part of the distribution the mass is kept.

    >>> numbers = score_tokens(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    >>> int(numbers.rank[0]), round(float(numbers.logprob[0]), 4), round(float(numbers.entropy[0]), 4)
    (2, -0.6931, 0.6931)
    """
    return _LogitSweep(logits.shape[-1], logits.dtype, logits.device, sampling).run([logits.clone()], token_ids)


class TokenScorer:
    """Reads the numbers of each token from a Hugging Face model that has an output layer over a vocabulary.

    The states that enter the output layer are caught on their way, so that whatever the model does before it
    (a transform, a scaling) is the model's own; what it does after it (soft-capping, scaling, a bias) is found out
    by a probe. A model that fits neither is read through its full logits: right, though slower.
    """

    def __init__(self, model: Any, probe: Mapping[str, Any], sampling: Sampling = Sampling()) -> None:  # noqa: B008
        """Find out how the model makes its logits.

        Args:
            model: In evaluation mode, with the forward signature of Hugging Face models.
            probe: A small input that the model can read, as keyword arguments.
            sampling: Of which part of the distribution the mass is kept.
        """
        self._model, self._sampling = model, sampling
        head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
        self._head: nn.Module | None = head
        self._postprocess: Callable[[Tensor], Tensor] | None = None
        self._buffer: Tensor | None = None
        self._sweep: _LogitSweep | None = None
        with torch.inference_mode():
            self.vocabulary = int(model(**probe).logits.shape[-1])
            self._postprocess = self._find_postprocessor(probe)

    @property
    def skips_full_logits(self) -> bool:
        """Whether the full logits are never computed."""
        return self._postprocess is not None

    @torch.inference_mode()
    def score(self, inputs: Mapping[str, Any], rows: Tensor, token_ids: Tensor) -> TokenScores:
        """The numbers of the tokens requested.

        Args:
            inputs: What the model reads: keyword arguments of its forward pass.
            rows: Which predictions are requested: places in the logits, batch and position counted as one [asked].
            token_ids: The true token of each [asked].

        Raises:
            ModelError: The model gave logits that are not numbers.
        """
        if self._postprocess is None:
            logits = self._model(**inputs).logits.flatten(0, -2)
            rows, token_ids = rows.to(logits.device), token_ids.to(logits.device)
            chunks = (logits.index_select(0, chunk) for chunk in torch.split(rows, self._count_rows(logits)))
            return self._get_sweep(logits.dtype, logits.device).run(chunks, token_ids)
        states = self._capture_states(inputs)
        # of a model that is spread over devices, the output layer is on another one than the inputs
        states, token_ids = states.index_select(0, rows.to(states.device)), token_ids.to(states.device)
        postprocess = self._postprocess
        chunks = (postprocess(self._compute_logits(chunk)) for chunk in torch.split(states, self._count_rows(states)))
        return self._get_sweep(states.dtype, states.device).run(chunks, token_ids)

    def __getstate__(self) -> dict[str, Any]:
        """Without the buffers, which a copy makes for itself."""
        return {**vars(self), "_buffer": None, "_sweep": None}

    def _get_sweep(self, dtype: torch.dtype, device: torch.device) -> _LogitSweep:
        """What takes the logits; the same each time, because memory that is new costs more than what is done in it."""
        if self._sweep is None:
            self._sweep = _LogitSweep(self.vocabulary, dtype, device, self._sampling)
        return self._sweep

    def _count_rows(self, states: Tensor) -> int:
        """How many rows of logits are made at once."""
        return max(1, min(MAX_ROWS, BUFFER_BYTES // (self.vocabulary * max(4, states.element_size()))))

    def _capture_states(self, inputs: Mapping[str, Any]) -> Tensor:
        """The states that enter the output layer [batch × length, width]."""
        caught: list[Tensor] = []

        def catch(states: Tensor) -> Tensor:
            caught.append(states)
            return states[:1, :1]

        with self._replace_head_input(catch):
            self._model(**inputs)
        return caught[0].flatten(0, -2)

    @contextmanager
    def _replace_head_input(self, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
        """While this lasts, the output layer is given what `change` makes of its input."""
        assert self._head is not None  # noqa: S101 - only called when there is one
        hook = self._head.register_forward_pre_hook(lambda _, inputs: (change(inputs[0]), *inputs[1:]))
        try:
            yield
        finally:
            hook.remove()

    def _compute_logits(self, states: Tensor) -> Tensor:
        """What the output layer makes of some states, in a buffer that the next call overwrites.

        States and weights in half precision are multiplied in single precision: rounded to half precision, hundreds of
        tokens would have the same logit, and ranks and log-probabilities would mean little.
        """
        if type(self._head) is not nn.Linear:
            return self._head(states)  # type: ignore[misc,no-any-return]
        work = torch.float64 if states.dtype == torch.float64 else torch.float32
        if self._buffer is None or self._buffer.dtype != work or len(self._buffer) < len(states):
            self._buffer = states.new_empty(self._count_rows(states), self.vocabulary, dtype=work)
        out, weight, bias = self._buffer[: len(states)], self._head.weight, self._head.bias
        if states.dtype != work:
            return self._compute_wide_logits(states.to(work), out)
        if bias is None:
            return torch.mm(states, weight.t(), out=out)
        return torch.addmm(bias, states, weight.t(), out=out)

    def _compute_wide_logits(self, states: Tensor, out: Tensor) -> Tensor:
        """The same in single precision, of weights that are converted a few at a time."""
        head: Any = self._head
        step = max(1, WIDENED_BYTES // (4 * head.weight.shape[1]))
        for begin in range(0, self.vocabulary, step):
            columns = slice(begin, begin + step)
            out[:, columns] = states @ head.weight[columns].to(states.dtype).t()
        return out if head.bias is None else out.add_(head.bias.to(states.dtype))

    def _find_postprocessor(self, probe: Mapping[str, Any]) -> Callable[[Tensor], Tensor] | None:
        """What the model does to its logits after the output layer; None if it cannot be told."""
        if self._head is None:
            return None
        try:
            states, expected = self._observe(probe)
        except (RuntimeError, IndexError, TypeError, ValueError):
            # a model whose own code does not bear another number of rows
            return None
        raw = self._head(states)
        if raw.shape != expected.shape:
            return None
        # some models round their logits to single precision, whatever they compute in
        tolerance = max(_TOLERANCE[raw.dtype], _TOLERANCE[expected.dtype])
        closest, error = None, tolerance * max(1.0, float(expected.abs().max()))
        for postprocess in _list_postprocessors(self._model):
            deviation = float((postprocess(raw.double()) - expected).abs().max())
            if deviation < error:
                closest, error = postprocess, deviation
        return closest

    def _observe(self, probe: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """States of the probe, as they are and stretched, and the logits that the model makes of them."""
        states = self._capture_states(probe)
        stretched = torch.cat([states * factor for factor in (-8.0, 4.0, 16.0)])
        with self._replace_head_input(lambda _: stretched[None]):
            beyond = self._model(**probe).logits.flatten(0, -2)
        return torch.cat([states, stretched]), torch.cat([self._model(**probe).logits.flatten(0, -2), beyond])


def _list_postprocessors(model: nn.Module) -> list[Callable[[Tensor], Tensor]]:
    """What models are known to do to their logits before tokens are scored, as far as this one's settings say."""
    config: Any = getattr(model, "config", None)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    cap = getattr(text, "final_logit_softcapping", None)
    bias = getattr(model, "final_logits_bias", None)
    # named functions, because a model that is copied to a worker takes its own with it
    found: list[Callable[[Tensor], Tensor]] = [_keep_logits]
    if cap:
        found.append(partial(_cap_logits, cap=cap))
    for factor in (getattr(text, "logit_scale", None), getattr(text, "logits_scaling", None)):
        if factor:
            found += [partial(_multiply_logits, factor=factor), partial(_divide_logits, factor=factor)]
    if bias is not None:
        found.append(partial(_shift_logits, bias=bias))
    return found


def _keep_logits(logits: Tensor) -> Tensor:
    """The logits as they are, before tokens are scored."""
    return logits


def _cap_logits(logits: Tensor, *, cap: float) -> Tensor:
    """Soft-capped logits, before tokens are scored."""
    return logits.div_(cap).tanh_().mul_(cap)


def _multiply_logits(logits: Tensor, *, factor: float) -> Tensor:
    """Scaled logits, before tokens are scored."""
    return logits.mul_(factor)


def _divide_logits(logits: Tensor, *, factor: float) -> Tensor:
    """Scaled logits, before tokens are scored."""
    return logits.div_(factor)


def _shift_logits(logits: Tensor, *, bias: Tensor) -> Tensor:
    """Logits with a bias, before tokens are scored."""
    return logits.add_(bias)


class _LogitSweep:
    """Takes rows of logits as they are made and keeps a few numbers of each."""

    def __init__(self, vocabulary: int, dtype: torch.dtype, device: torch.device, sampling: Sampling) -> None:
        self._work, self._sampling = torch.float64 if dtype == torch.float64 else torch.float32, sampling
        self._scratch = torch.empty(max(1, MAX_SWEEP_VALUES // vocabulary), vocabulary, dtype=self._work, device=device)
        self._top = min(sampling.top_k, vocabulary)

    def run(self, chunks: Iterable[Tensor], token_ids: Tensor) -> TokenScores:
        """The numbers of all rows of logits, which are overwritten, and of their true tokens."""
        # rank, true logit, highest logit, the sums of e^d, d e^d and d² e^d with d = logit − highest, and that of
        # e^(d/temperature) over the top k
        kept, done = self._scratch.new_empty(7, len(token_ids)), 0
        for chunk in chunks:
            for rows in torch.split(chunk, len(self._scratch)):
                rows_done = slice(done, done + len(rows))
                self._sweep_rows(rows.to(self._work), token_ids[rows_done], kept[:, rows_done])
                done += len(rows)
        temperature = self._sampling.temperature
        return _build_token_scores(kept.double().cpu().numpy(), temperature, double=self._work == torch.float64)

    def _sweep_rows(self, logits: Tensor, token_ids: Tensor, kept: Tensor) -> None:
        """Sweep rows of logits: every pass over the vocabulary is in this function."""
        scratch = self._scratch[: len(logits)]
        true = torch.gather(logits, 1, token_ids[:, None])
        top = find_top_logits(logits, self._top)
        highest = top[:, :1]
        kept[1], kept[2] = true[:, 0], highest[:, 0]
        torch.sum((top - highest).div_(self._sampling.temperature).exp_(), 1, out=kept[6])
        # comparing into floats and summing them is five times faster than counting booleans, and exact below 2^24
        torch.sum(torch.ge(logits, true, out=scratch), 1, out=kept[0])
        logits.sub_(highest).clamp_(min=_FLOOR[self._work])
        torch.sum(torch.exp(logits, out=scratch), 1, out=kept[3])
        torch.sum(scratch.mul_(logits), 1, out=kept[4])
        torch.sum(scratch.mul_(logits), 1, out=kept[5])


def find_top_logits(logits: Tensor, count: int) -> Tensor:
    """The highest so many logits of each scored token, highest first.

    Only the blocks with the highest maxima are looked at: whoever is among the top is in one of as many blocks, or
    equal to values that are.

    >>> find_top_logits(torch.tensor([[1.0, 3.0, 2.0]]), 2).tolist()
    [[3.0, 2.0]]
    """
    rows, width = logits.shape
    blocks = width // _BLOCK
    if blocks <= count:
        return torch.topk(logits, count).values
    whole = logits[:, : blocks * _BLOCK].view(rows, blocks, _BLOCK)
    chosen = torch.topk(torch.amax(whole, 2), count, sorted=False).indices
    near = torch.gather(whole, 1, chosen[:, :, None].expand(rows, count, _BLOCK)).flatten(1)
    return torch.topk(torch.cat([near, logits[:, blocks * _BLOCK :]], 1), count).values


def build_not_finite_error() -> ModelError:
    """Why logits that are not numbers are not scored."""
    return ModelError(
        "The model gives logits that are not finite numbers.",
        do="Score in float32 if it was loaded in half precision; otherwise its weights are damaged.",
        code="logits_not_finite",
    )


def _build_token_scores(kept: NDArray[np.float64], temperature: float, *, double: bool) -> TokenScores:
    """The scores of tokens that follow from the sums of all rows."""
    rank, true, highest, total, first, second, top = kept
    if not np.isfinite(highest).all():
        raise build_not_finite_error()
    partition, mean = np.log(total), first / total
    kind = np.float64 if double else np.float32
    return TokenScores(
        rank=rank.astype(np.int32),
        logprob=(true - highest - partition).astype(kind),
        entropy=(partition - mean).astype(kind),
        logprob_std=np.sqrt(np.maximum(second / total - mean**2, 0)).astype(kind),
        kept_mass=(top * np.exp(-partition / temperature)).astype(kind),
    )
