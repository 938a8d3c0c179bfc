"""Per-record gradients: of all records at once where every layer has a formula, or of one record after the other.

Both leave the gradients in each trained parameter's `grad_sample` [records, …], which is where Opacus' optimiser looks
for them, and both equal the gradient of a batch that holds one record alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import torch
from opacus.grad_sample import GradSampleHooks
from torch import Tensor, nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from recollect.errors import ModelError
from recollect.recipes.data.sequences import SequenceBatch
from recollect.recipes.private.recurrent_gradients import build_recording_forward

Formula = Callable[[nn.Module, list[Tensor], Tensor], dict[nn.Parameter, Tensor]]
"""(layer, its inputs, the gradient of its output) → the per-record gradients of its parameters."""
_BY_OPACUS = {nn.Linear, nn.Conv1d, nn.Conv2d, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm}
"""Layers whose formula is taken from Opacus as it is."""


def compute_one_by_one(model: nn.Module, losses: Iterable[Tensor]) -> None:
    """Per-record gradients from the loss of one record after the other; right for every model."""
    parameters = get_trained_parameters(model)
    rows = [torch.autograd.grad(loss, parameters, materialize_grads=True) for loss in losses]
    for i, parameter in enumerate(parameters):
        set_gradients(parameter, torch.stack([row[i] for row in rows]))


def compute_all_at_once(model: nn.Module, losses: Callable[[], Tensor], *, records: int) -> None:
    """Per-record gradients from one pass over all records.

    Args:
        model: One whose layers all have a formula, which `support.check_layers` makes sure of.
        losses: Runs the model and gives one loss per record; each may depend on its own record alone.
        records: How many records that are.
    """
    tape = _GradientTape(records=records)
    with _attach_tape(model, tape):
        with _detach_weights(model):
            total = losses().sum()
        total.backward()  # type: ignore[no-untyped-call]
    for parameter in get_trained_parameters(model):
        zeros = parameter.new_zeros(1).expand(records, *parameter.shape)
        set_gradients(parameter, tape.samples.get(parameter, zeros))


def check_equal(model: nn.Module, losses: Callable[[SequenceBatch], Tensor], batch: SequenceBatch) -> None:
    """Refuse a model whose gradients differ when its records are handled together and alone.

    This would catch a layer in which records meet without anybody having known. Dropout is off meanwhile, since the
    two ways draw it differently.

    Raises:
        ModelError: Names the parameter whose gradients differ.
    """
    records, was_training = len(batch.targets), model.training
    model.eval()
    with torch.backends.cudnn.flags(enabled=False):  # it has no gradients of recurrent layers in evaluation
        compute_one_by_one(model, (losses(separate_gradients).sum() for separate_gradients in batch.split(records)))
        separate_gradients = [get_gradients(parameter) for parameter in get_trained_parameters(model)]
        compute_all_at_once(model, lambda: losses(batch), records=records)
    model.train(was_training)
    scale = max(float(rows.abs().max()) for rows in separate_gradients)
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    for name, parameter, rows in zip(names, get_trained_parameters(model), separate_gradients, strict=True):
        if float((get_gradients(parameter) - rows).abs().max()) > 1e-3 * scale:
            raise ModelError(
                f"The gradient of {name!r} is not the same for a record alone and among others.",
                do="Use a model that does not mix the records of a batch.",
                code="records_meet",
            )


def set_empty_gradients(model: nn.Module) -> None:
    """The per-record gradients of no records at all: Poisson sampling may draw an empty batch."""
    for parameter in get_trained_parameters(model):
        set_gradients(parameter, parameter.new_zeros(0, *parameter.shape))


def get_trained_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that have per-record gradients: those that training changes, each once."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def set_gradients(parameter: nn.Parameter, rows: Tensor) -> None:
    """Leave per-unit gradients where Opacus looks for them."""
    parameter.grad_sample = rows  # type: ignore[attr-defined]


def get_gradients(parameter: nn.Parameter) -> Tensor:
    """The per-unit gradients that were left."""
    rows: Tensor = parameter.grad_sample  # type: ignore[attr-defined]
    return rows


def get_formula(layer: nn.Module) -> Formula | None:
    """How a layer's per-record gradients follow from its inputs and the gradient of its output; None if unknown."""
    if isinstance(layer, Conv1D):
        return _compute_conv1d_gradients
    if type(layer).__name__.endswith("RMSNorm") and not isinstance(layer, nn.RMSNorm):
        return _compute_rms_norm_gradients
    if type(layer) is nn.Embedding:
        return _compute_embedding_gradients
    return GradSampleHooks.GRAD_SAMPLERS[type(layer)] if type(layer) in _BY_OPACUS else None


@dataclass(kw_only=True)
class _GradientTape:
    """Collects gradients during one pass; a layer that is used twice adds up."""

    records: int
    samples: dict[nn.Parameter, Tensor] = field(default_factory=dict)

    def add(self, parameter: nn.Parameter, rows: Tensor) -> None:
        """Add per-record gradients of a parameter."""
        if parameter.requires_grad:
            before = self.samples.get(parameter)
            self.samples[parameter] = rows if before is None else before + rows

    def watch(
        self, name: str, formula: Formula, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor
    ) -> Tensor:
        """A forward hook: request the gradient of the layer's output, one row per record."""
        if len(output) not in {1, self.records}:
            raise ModelError(
                f"Layer {name!r} ({type(layer).__name__}) gave {len(output)} rows for {self.records} records.",
                do="Use a model that keeps one row per record in every layer.",
                code="rows_of_several_records",
            )
        expanded_inputs = [value.detach().expand(self.records, *value.shape[1:]) for value in inputs]
        if len(output) != self.records:  # positions are often embedded once for all records
            output = output.expand(self.records, *output.shape[1:])
        if not output.requires_grad:
            output = output.detach().requires_grad_()

        def backward(gradient: Tensor) -> None:
            for parameter, rows in formula(layer, expanded_inputs, gradient).items():
                self.add(parameter, rows)

        output.register_hook(backward)  # type: ignore[no-untyped-call]
        return output.clone() if output.is_leaf else output  # a leaf could not be changed in place by what follows


@contextmanager
def _attach_tape(model: nn.Module, tape: _GradientTape) -> Iterator[None]:
    """Within the block the trained layers report their per-record gradients to the tape."""
    handles, replaced = [], []
    try:
        for name, layer in model.named_modules():
            if not any(parameter.requires_grad for parameter in layer.parameters(recurse=False)):
                continue
            formula = get_formula(layer)
            if isinstance(layer, nn.LSTM | nn.GRU):
                layer.forward = build_recording_forward(layer, tape.add)  # type: ignore[method-assign]
                replaced.append(layer)
            elif formula is not None:
                handles.append(layer.register_forward_hook(partial(tape.watch, name, formula)))
        yield
    finally:
        for handle in handles:
            handle.remove()
        for layer in replaced:
            del layer.forward


@contextmanager
def _detach_weights(model: nn.Module) -> Iterator[None]:
    """Within the block no gradient of the weights is computed: their sum over the batch is not needed."""
    parameters = get_trained_parameters(model)
    try:
        for parameter in parameters:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


def _compute_embedding_gradients(
    layer: nn.Module, inputs: list[Tensor], gradient: Tensor
) -> dict[nn.Parameter, Tensor]:
    """Opacus' formula, and no gradient for the token of padding, which torch does not train."""
    samples: dict[nn.Parameter, Tensor] = GradSampleHooks.GRAD_SAMPLERS[nn.Embedding](layer, inputs, gradient)
    padding = getattr(layer, "padding_idx", None)
    if padding is not None:
        for rows in samples.values():
            rows[:, padding] = 0
    return samples


def _compute_conv1d_gradients(layer: nn.Module, inputs: list[Tensor], gradient: Tensor) -> dict[nn.Parameter, Tensor]:
    """GPT-2's linear layer, whose weight is [inputs, outputs]."""
    assert isinstance(layer, Conv1D)  # noqa: S101 - for the type checker
    weight = torch.einsum("n...i,n...j->nij", inputs[0], gradient)
    return {layer.weight: weight, layer.bias: gradient.flatten(1, -2).sum(1)}


def _compute_rms_norm_gradients(layer: nn.Module, inputs: list[Tensor], gradient: Tensor) -> dict[nn.Parameter, Tensor]:
    """The root-mean-square norms of Llama and its kin, which name their ε differently."""
    epsilon = getattr(layer, "variance_epsilon", None) or layer.eps
    scaled = functional.rms_norm(inputs[0], inputs[0].shape[-1:], eps=float(epsilon))  # type: ignore[arg-type]
    return {layer.weight: (scaled * gradient).flatten(1, -2).sum(1)}  # type: ignore[dict-item]
