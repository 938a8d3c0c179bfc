"""Plain `nn.LSTM` and `nn.GRU` with one shape of state, and right numbers under padding on either side."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

State = tuple[Tensor, ...]
"""What a network remembers: (h, c) of an LSTM, (h,) of a GRU, each [sequences, layers, units].

Sequences come first, so that whoever reorders or keeps states needs to know nothing of the network.
"""

CELLS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


def build_recurrence(cell: str, inputs: int, units: int, *, layers: int, dropout: float) -> nn.RNNBase:
    """A recurrent network that reads [sequences, steps, inputs]; dropout is between its layers."""
    return CELLS[cell](inputs, units, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)


def run_recurrence(
    network: nn.RNNBase, inputs: Tensor, state: State | None, mask: Tensor | None, *, final: bool = True
) -> tuple[Tensor, State]:
    """The outputs of every step, and the state after the last.

    Args:
        network: What `build_recurrence` made.
        inputs: [sequences, steps, inputs].
        state: Where the sequences continue from; None for the beginning.
        mask: [sequences, steps], zero where a sequence is padded: such a step changes no state. May begin before
            the inputs do.
        final: Whether the state is wanted. If not, padding on the right costs nothing and the state is any.
    """
    mask = None if mask is None else mask[:, -inputs.shape[1] :]
    if mask is None or bool(mask.all() if final else mask[:, 0].all()):
        if state is not None and _is_cheap_recurrent_step(network, inputs):
            return _run_recurrent_cells(network, inputs[:, 0], state)
        outputs, after = network(inputs, _to_torch_state(state))
        return outputs, _from_torch_recurrent_state(after)
    # A packed sequence begins at its first step, so padding on the left is first rolled to the right.
    steps = torch.arange(mask.shape[1], device=mask.device)
    leading = (mask.cumsum(1) == 0).sum(1, keepdim=True)
    packed = pack_padded_sequence(
        _roll_steps(inputs, steps + leading),
        mask.sum(1).clamp(min=1).cpu(),
        batch_first=True,
        enforce_sorted=False,
    )
    packed_outputs, after = network(packed, _to_torch_state(state))
    outputs, _ = pad_packed_sequence(packed_outputs, batch_first=True, total_length=mask.shape[1])
    return _roll_steps(outputs, steps - leading), _from_torch_recurrent_state(after)


def _is_cheap_recurrent_step(network: nn.RNNBase, inputs: Tensor) -> bool:
    """Whether this is one recurrent step without training: there the cells beat the whole network on a CPU."""
    plain = type(network) in (nn.LSTM, nn.GRU) and not network.training and not torch.is_grad_enabled()
    return plain and inputs.shape[1] == 1 and inputs.device.type == "cpu"


def _run_recurrent_cells(network: nn.RNNBase, hidden: Tensor, state: State) -> tuple[Tensor, State]:
    """One step of a recurrent network, cell by cell, without turning the state around."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    afters = []
    for layer in range(network.num_layers):
        weights = [getattr(network, f"{name}_l{layer}") for name in names]
        if network.mode == "LSTM":
            after = torch.lstm_cell(hidden, [piece[:, layer] for piece in state], *weights)
        else:
            after = (torch.gru_cell(hidden, state[0][:, layer], *weights),)  # type: ignore[assignment]
        hidden = after[0]
        afters.append(after)
    return hidden[:, None], tuple(torch.stack(pieces, dim=1) for pieces in zip(*afters, strict=True))


def _roll_steps(values: Tensor, steps: Tensor) -> Tensor:
    """Each sequence's steps of a recurrence taken from these places, counted around the end."""
    index = (steps % values.shape[1]).unsqueeze(2).expand(-1, -1, values.shape[2])
    return values.gather(1, index)


def _to_torch_state(state: State | None) -> Tensor | State | None:
    """A state as torch wants it: layers first, and bare where there is one tensor."""
    if state is None:
        return None
    turned = tuple(piece.transpose(0, 1).contiguous() for piece in state)
    return turned if len(turned) > 1 else turned[0]


def _from_torch_recurrent_state(state: Tensor | State) -> State:
    """Torch's state of recurrent layers as ours."""
    pieces = state if isinstance(state, tuple) else (state,)
    return tuple(piece.transpose(0, 1) for piece in pieces)
