"""LSTM and GRU layers whose per-record gradients cost no more than training without privacy.

A recurrent weight acts at every step, so Opacus' recurrent layers write one gradient of the weight's size per record
*and step*. Here the layer runs over all records at once, and only the gradient of its gates is kept, [records, steps,
gates]; one product with the inputs then sums over the steps. Nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

Take = Callable[[nn.Parameter, Tensor], None]
"""Receives one parameter's gradients, one row per record."""
States = tuple[Tensor, ...]
"""(h, c) of an LSTM or (h,) of a GRU, each [records, units]."""


@dataclass(frozen=True, kw_only=True)
class _RecurrentWeights:
    """The parameters of one layer in one direction."""

    inputs: nn.Parameter
    hidden: nn.Parameter
    input_bias: nn.Parameter | None
    hidden_bias: nn.Parameter | None

    @classmethod
    def of(cls, layer: nn.RNNBase, suffix: str) -> _RecurrentWeights:
        """Those whose names end in, say, `l0_reverse`."""
        biases = [getattr(layer, f"bias_{side}_{suffix}", None) for side in ("ih", "hh")]
        return cls(
            inputs=getattr(layer, f"weight_ih_{suffix}"),
            hidden=getattr(layer, f"weight_hh_{suffix}"),
            input_bias=biases[0],
            hidden_bias=biases[1],
        )


def build_recording_forward(layer: nn.RNNBase, take: Take) -> Callable[..., tuple[Any, Any]]:
    """What computes the same as `layer(inputs, state)` and, on the way back, hands per-record gradients to `take`."""

    def forward(inputs: Tensor | PackedSequence, state: Any = None) -> tuple[Any, Any]:
        if isinstance(inputs, PackedSequence):
            padded, lengths = pad_packed_sequence(inputs, batch_first=True)
            outputs, last = _run_recurrent_layers(layer, padded, state, _mask_recurrent_steps(padded, lengths), take)
            return pack_padded_sequence(outputs, lengths, batch_first=True, enforce_sorted=False), last
        if layer.batch_first:
            return _run_recurrent_layers(layer, inputs, state, None, take)
        outputs, last = _run_recurrent_layers(layer, inputs.transpose(0, 1), state, None, take)
        return outputs.transpose(0, 1), last

    return forward


def _mask_recurrent_steps(padded: Tensor, lengths: Tensor) -> Tensor:
    """Which steps of a recurrent layer are read of each record: [records, steps, 1]."""
    steps = torch.arange(padded.shape[1], device=padded.device)
    return (steps < lengths.to(padded.device).unsqueeze(1)).unsqueeze(2)


def _run_recurrent_layers(
    layer: nn.RNNBase, inputs: Tensor, state: Any, read: Tensor | None, take: Take
) -> tuple[Tensor, Any]:
    """All layers and directions over [records, steps, values]: the outputs, and the last states as torch gives them."""
    step_through = _run_lstm if layer.mode == "LSTM" else _run_gru
    directions = ("", "_reverse") if layer.bidirectional else ("",)
    initial, last = _get_initial_states(layer, inputs, state), list[States]()
    for depth in range(layer.num_layers):
        outputs = []
        for direction in directions:
            weights = _RecurrentWeights.of(layer, f"l{depth}{direction}")
            given = _RecurrentPass(inputs, initial[len(last)], read)
            out, final = step_through(given.reverse() if direction else given, weights, take)
            outputs.append(out.flip(1) if direction else out)
            last.append(final)
        inputs = torch.cat(outputs, dim=2)
        if layer.dropout and depth + 1 < layer.num_layers:
            inputs = functional.dropout(inputs, layer.dropout, training=layer.training)
    final_states = tuple(torch.stack(piece) for piece in zip(*last, strict=True))
    return inputs, final_states if layer.mode == "LSTM" else final_states[0]


def _get_initial_states(layer: nn.RNNBase, inputs: Tensor, state: Any) -> list[States]:
    """The state before the first step, for every recurrent layer and direction."""
    pieces = 2 if layer.mode == "LSTM" else 1
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    if state is None:
        zeros = inputs.new_zeros(len(inputs), layer.hidden_size)
        return [(zeros,) * pieces] * count
    given = state if isinstance(state, tuple) else (state,)
    return [tuple(piece[i] for piece in given) for i in range(count)]


@dataclass(frozen=True)
class _RecurrentPass:
    """What one layer reads in one direction."""

    inputs: Tensor
    state: States
    read: Tensor | None
    """Which steps count; a step that does not leaves the state as it was. None: all do."""

    def reverse(self) -> _RecurrentPass:
        """The same from the last step to the first."""
        return _RecurrentPass(self.inputs.flip(1), self.state, None if self.read is None else self.read.flip(1))

    def mask_outputs(self, step: int, new: Tensor, old: Tensor) -> Tensor:
        """The new state where the step counts, else the old one."""
        return new if self.read is None else torch.where(self.read[:, step], new, old)


def _run_lstm(given: _RecurrentPass, weights: _RecurrentWeights, take: Take) -> tuple[Tensor, States]:
    """One recurrent layer (LSTM); both sides of its gates have the same gradient."""
    h, c = given.state
    bias = (
        None if weights.input_bias is None or weights.hidden_bias is None else weights.input_bias + weights.hidden_bias
    )
    gates = _needs_gradient(functional.linear(given.inputs, weights.inputs, bias))
    hidden, outputs = weights.hidden.t(), []
    for t, step in enumerate(gates.unbind(1)):
        i, f, g, o = torch.addmm(step, h, hidden).chunk(4, dim=1)
        c = given.mask_outputs(t, torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g), c)
        h = given.mask_outputs(t, torch.sigmoid(o) * torch.tanh(c), h)
        outputs.append(h)
    out = torch.stack(outputs, dim=1)
    before = _shift_states(given.state[0], out)

    def backward(gradient: Tensor) -> None:
        _set_recurrent_gradients(take, weights, (gradient, gradient), given.inputs.detach(), before)

    gates.register_hook(backward)  # type: ignore[no-untyped-call]
    return out, (h, c)


def _run_gru(given: _RecurrentPass, weights: _RecurrentWeights, take: Take) -> tuple[Tensor, States]:
    """One recurrent layer (GRU); the reset gate is between the candidate and its hidden side."""
    (h,), units = given.state, given.state[0].shape[1]
    gates = _needs_gradient(functional.linear(given.inputs, weights.inputs, weights.input_bias))
    outputs, resets = [], []
    for t, step in enumerate(gates.unbind(1)):
        past = functional.linear(h, weights.hidden, weights.hidden_bias)
        r, z = torch.sigmoid(step[:, : 2 * units] + past[:, : 2 * units]).chunk(2, dim=1)
        n = torch.tanh(step[:, 2 * units :] + r * past[:, 2 * units :])
        h = given.mask_outputs(t, n + z * (h - n), h)
        outputs.append(h)
        resets.append(r.detach())
    out = torch.stack(outputs, dim=1)
    before, reset = _shift_states(given.state[0], out), torch.stack(resets, dim=1)

    def backward(gradient: Tensor) -> None:
        past = torch.cat([gradient[..., : 2 * units], gradient[..., 2 * units :] * reset], dim=2)
        _set_recurrent_gradients(take, weights, (gradient, past), given.inputs.detach(), before)

    gates.register_hook(backward)  # type: ignore[no-untyped-call]
    return out, (h,)


def _needs_gradient(gates: Tensor) -> Tensor:
    """The gates, whose gradient is wanted even if nothing before them has one."""
    return gates if gates.requires_grad else gates.requires_grad_()


def _shift_states(first: Tensor, outputs: Tensor) -> Tensor:
    """The hidden state that each recurrent step started from."""
    return torch.cat([first.detach().unsqueeze(1), outputs.detach()[:, :-1]], dim=1)


def _set_recurrent_gradients(
    take: Take, weights: _RecurrentWeights, sides: tuple[Tensor, Tensor], inputs: Tensor, before: Tensor
) -> None:
    """Hand over the gradients of one layer's weights from those of its gates' input side and hidden side."""
    gates, past = sides
    take(weights.inputs, gates.transpose(1, 2) @ inputs)
    take(weights.hidden, past.transpose(1, 2) @ before)
    if weights.input_bias is not None and weights.hidden_bias is not None:
        take(weights.input_bias, gates.sum(1))
        take(weights.hidden_bias, past.sum(1))
