"""Causal convolutional language models: a plain CNN, and a gated, dilated one in the manner of WaveNet.

With 50 tokens they have the papers' sizes (Carlini et al. 2018, Table 1: 620,000 ± 5,000) at these widths and
embeddings, which the paper does not state: CNN of width 10, 1 × 436 with 136, 2 × 188 with 133, 4 × 122 with 131;
WaveNet of width 5, 2 × 188 with 133, 4 × 122 with 131. (A gated layer has two weights where a plain one has one, so
that half the width gives the same size.)
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from recollect.models.architectures.recurrent_layers import State
from recollect.models.architectures.stateful import (
    Stateful,
    StatefulOutput,
    TokenConfig,
    compute_next_token_loss,
    select_steps,
)


class ConvolutionalConfig(TokenConfig):
    """The sizes of a convolutional language model."""

    model_type = "recollect-convolutional"
    attribute_map = {"hidden_size": "units", "num_hidden_layers": "layers"}  # noqa: RUF012 - as transformers has it

    form: Literal["cnn", "wavenet"] = "cnn"
    layers: int = 2
    units: int = 188
    width: int = 10
    """How many steps one layer looks at."""
    dilations: list[int] | None = None
    """How far apart those are, per layer; None for 1 (cnn) or 1, 2, 4, … (wavenet)."""

    def __post_init__(self, **kwargs: object) -> None:
        """Fill in the dilations."""
        super().__post_init__(**kwargs)  # type: ignore[no-untyped-call]
        if self.dilations is None:
            self.dilations = [2**i if self.form == "wavenet" else 1 for i in range(self.layers)]
        if len(self.dilations) != self.layers:
            raise ValueError(f"{len(self.dilations)} dilations were given for {self.layers} layers.")
        if self.tie_word_embeddings and self.embedding != self.units:
            raise ValueError(f"A tied embedding has the size of the units: {self.embedding} is not {self.units}.")


class CausalLayer(nn.Module):
    """One convolution over the past. Its state is the past it must look back on: zeros before a text begins."""

    def __init__(self, inputs: int, config: ConvolutionalConfig, dilation: int) -> None:
        super().__init__()
        self.gated = config.form == "wavenet"
        self.past = (config.width - 1) * dilation
        units = 2 * config.units if self.gated else config.units
        self.convolution = nn.Conv1d(inputs, units, config.width, dilation=dilation)

    def forward(self, inputs: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
        """Outputs [sequences, units, steps] and the state after the last step."""
        if before is None:
            before = inputs.new_zeros(*inputs.shape[:2], self.past)
        seen = torch.cat([before, inputs], dim=2)
        outputs = self.convolution(seen)
        after = seen[:, :, seen.shape[2] - self.past :]
        if not self.gated:
            return torch.relu(outputs), after
        values, gate = outputs.chunk(2, dim=1)
        added = torch.tanh(values) * torch.sigmoid(gate)
        # Each layer adds to the last, so what reaches the output layer is WaveNet's sum of skips.
        return added + inputs if added.shape == inputs.shape else added, after


class ConvolutionalLM(Stateful):
    """Embedded tokens → causal convolutions → one linear layer over the vocabulary. There is no longest text."""

    config_class = ConvolutionalConfig
    _tied_weights_keys = {"lm_head.weight": "embed_tokens.weight"}  # noqa: RUF012 - as transformers has it

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding)
        sizes = [config.embedding] + [config.units] * (config.layers - 1)
        dilations = config.dilations or []
        self.layers = nn.ModuleList(CausalLayer(n, config, d) for n, d in zip(sizes, dilations, strict=True))
        self.dropout = nn.Dropout(config.dropout)
        self.lm_head = nn.Linear(config.units, config.vocab_size)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(  # noqa: PLR0913 - the arguments that `generate()` and the training loop know
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        labels: Tensor | None = None,
        past_key_values: State | None = None,
        use_cache: bool = False,
        logits_to_keep: int | Tensor = 0,
        return_dict: bool = True,
    ) -> StatefulOutput:
        """Logits of what follows each token; padding on the right changes nothing, on the left it is skipped.

        Args:
            input_ids: Tokens [sequences, steps].
            attention_mask: Zero where padded; may begin before `input_ids` do, by what the state has read.
            labels: Like `input_ids`, -100 where no loss is wanted; adds the mean loss.
            past_key_values: The state to continue from.
            use_cache: Whether the state after the last step is wanted; only padding on the left is skipped in it.
            logits_to_keep: The last so many steps (0: all), or which.
            return_dict: Taken for granted.
        """
        mask = None if attention_mask is None else attention_mask[:, None, -input_ids.shape[1] :]
        if mask is not None and bool(mask[:, :, 0].all()):
            mask = None
        hidden = self.embed_tokens(input_ids).transpose(1, 2)
        befores = past_key_values or [None] * len(self.layers)
        afters = []
        for layer, before in zip(self.layers, befores, strict=True):
            # Before a text begins there are zeros in every layer, and so there must be under padding.
            hidden = hidden if mask is None else hidden * mask
            hidden, after = layer(self.dropout(hidden), before)
            afters.append(after)
        logits = self.lm_head(select_steps(self.dropout(hidden).transpose(1, 2), logits_to_keep))
        loss = compute_next_token_loss(logits, labels)
        return StatefulOutput(loss=loss, logits=logits, past_key_values=tuple(afters) if use_cache else None)
