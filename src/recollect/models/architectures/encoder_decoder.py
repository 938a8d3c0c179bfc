"""The recurrent encoder–decoder, with and without attention: from a source text to a target text.

Song and Shmatikov 2019, B.1: one-layer LSTMs, with attention for translation and without for dialogue. Attention is
Luong's (2015): global, "general" score, no input feeding, so that training reads the whole target at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from transformers.utils.generic import ModelOutput

from recollect.models.architectures.recurrent_layers import State, build_recurrence, run_recurrence
from recollect.models.architectures.stateful import Stateful, TokenConfig, select_steps


class TranslatingConfig(TokenConfig):
    """The sizes of an encoder–decoder; source and target share one vocabulary, each with its own embedding."""

    model_type = "recollect-translating"
    attribute_map = {"hidden_size": "units", "num_hidden_layers": "layers"}  # noqa: RUF012 - as transformers has it

    cell: Literal["lstm", "gru"] = "lstm"
    layers: int = 1
    units: int = 128
    attention: bool = False
    is_encoder_decoder: bool = True
    decoder_start_token_id: int | None = None


@dataclass
class EncoderOutput(ModelOutput):
    """What the encoder leaves for the decoder."""

    last_hidden_state: Tensor = None  # type: ignore[assignment]  # transformers wants a default
    """[sequences, steps, units]; zero where padded."""
    final: Tensor = None  # type: ignore[assignment]
    """Its last state [sequences, parts, layers, units], where the decoder starts from."""


@dataclass
class TranslatingOutput(ModelOutput):
    """What the model gives."""

    loss: Tensor | None = None
    """The mean over all labels, in nats, if labels were given."""
    logits: Tensor | None = None
    """[sequences, target steps, vocabulary]."""
    past_key_values: State | None = None
    """The decoder's state after the last step, if wanted."""
    encoder_last_hidden_state: Tensor | None = None
    """The encoder's outputs."""


class SourceEncoder(nn.Module):
    """Embedded source tokens → LSTM or GRU."""

    main_input_name = "input_ids"

    def __init__(self, config: TranslatingConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding)
        self.rnn = build_recurrence(
            config.cell, config.embedding, config.units, layers=config.layers, dropout=config.dropout
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: object) -> EncoderOutput:
        """Encode the sources; padding on either side is skipped."""
        outputs, final = run_recurrence(self.rnn, self.dropout(self.embed_tokens(input_ids)), None, attention_mask)
        return EncoderOutput(last_hidden_state=outputs, final=torch.stack(final, dim=1))


class Attention(nn.Module):
    """Where to look in the source (Luong et al. 2015, equations 5, 7 and 8): tanh(W [Σ a s; h])."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.score = nn.Linear(units, units, bias=False)
        self.combine = nn.Linear(2 * units, units, bias=False)

    def forward(self, hidden: Tensor, source: Tensor, mask: Tensor | None) -> Tensor:
        """What the decoder found [sequences, target steps, units]; padded sources are not looked at."""
        scores = self.score(hidden) @ source.transpose(1, 2)
        if mask is not None:
            scores = scores.masked_fill(mask[:, None] == 0, torch.finfo(scores.dtype).min)
        context = scores.softmax(dim=-1) @ source
        return torch.tanh(self.combine(torch.cat([context, hidden], dim=2)))


class TranslatingLM(Stateful):
    """Source → encoder → decoder, which begins in the encoder's last state → logits over the vocabulary."""

    config_class = TranslatingConfig

    def __init__(self, config: TranslatingConfig) -> None:
        super().__init__(config)
        self.encoder = SourceEncoder(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding)
        self.rnn = build_recurrence(
            config.cell, config.embedding, config.units, layers=config.layers, dropout=config.dropout
        )
        self.attention = Attention(config.units) if config.attention else None
        self.dropout = nn.Dropout(config.dropout)
        self.lm_head = nn.Linear(config.units, config.vocab_size)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(  # noqa: PLR0913 - the arguments that `generate()` and the training loop know
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        *,
        decoder_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        encoder_outputs: EncoderOutput | None = None,
        past_key_values: State | None = None,
        use_cache: bool = False,
        logits_to_keep: int | Tensor = 0,
        return_dict: bool = True,
    ) -> TranslatingOutput:
        """The encoder–decoder's logits of what follows each target token.

        Args:
            input_ids: Source tokens [sequences, source steps]; not needed with `encoder_outputs`.
            attention_mask: Zero where the source is padded.
            decoder_input_ids: Target tokens, the start token first; from `labels` if they are not given.
            decoder_attention_mask: Zero where the target is padded; may begin before `decoder_input_ids` do.
            labels: Target tokens without the start token, -100 where no loss is wanted; adds the mean loss.
            encoder_outputs: What the encoder gave before.
            past_key_values: The decoder's state to continue from.
            use_cache: Whether its state after the last step is wanted.
            logits_to_keep: The last so many steps (0: all), or which.
            return_dict: Taken for granted.
        """
        encoded = self.encoder(input_ids, attention_mask) if encoder_outputs is None else encoder_outputs
        shown = self.shift_right(labels) if decoder_input_ids is None and labels is not None else decoder_input_ids
        if shown is None:
            raise ValueError("Neither decoder_input_ids nor labels were given.")
        state = tuple(encoded.final.unbind(1)) if past_key_values is None else past_key_values
        embedded = self.dropout(self.embed_tokens(shown))
        hidden, after = run_recurrence(self.rnn, embedded, state, decoder_attention_mask, final=use_cache)
        hidden = select_steps(hidden, logits_to_keep)
        if self.attention is not None:
            hidden = self.attention(hidden, encoded.last_hidden_state, attention_mask)
        logits = self.lm_head(self.dropout(hidden))
        loss = None if labels is None else nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        return TranslatingOutput(
            loss=loss,
            logits=logits,
            past_key_values=after if use_cache else None,
            encoder_last_hidden_state=encoded.last_hidden_state,
        )

    def shift_right(self, labels: Tensor) -> Tensor:
        """What the decoder reads to predict these target tokens: the start token, then all but the last."""
        start, pad = self.config.decoder_start_token_id, self.config.pad_token_id or 0
        if start is None:
            raise ValueError("The configuration has no decoder_start_token_id.")
        shifted = torch.cat([labels.new_full((len(labels), 1), start), labels[:, :-1]], dim=1)
        return shifted.masked_fill(shifted == -100, pad)
