"""The recurrent language model: LSTM or GRU.

With 50 tokens it has the papers' sizes (Carlini et al. 2018, Table 1: 620,000 ± 5,000) at these embeddings, which
the paper does not state: LSTM 2 × 200 with 149, LSTM 1 × 320 with 144, GRU 1 × 370 with 162, GRU 2 × 235 with 143.
The four marks of our tokenizers add `units + embedding + 1` each.

Under differential privacy `rnn` is computed step by step from the same weights, which are what is saved.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from recollect.models.architectures.recurrent_layers import State, build_recurrence, run_recurrence
from recollect.models.architectures.stateful import (
    Stateful,
    StatefulOutput,
    TokenConfig,
    compute_next_token_loss,
    select_steps,
)


class RecurrentConfig(TokenConfig):
    """The sizes of a recurrent language model."""

    model_type = "recollect-recurrent"
    attribute_map = {"hidden_size": "units", "num_hidden_layers": "layers"}  # noqa: RUF012 - as transformers has it

    cell: Literal["lstm", "gru"] = "lstm"
    layers: int = 1
    units: int = 128

    def __post_init__(self, **kwargs: object) -> None:
        """Refuse an embedding that cannot be the output layer too."""
        super().__post_init__(**kwargs)  # type: ignore[no-untyped-call]
        if self.tie_word_embeddings and self.embedding != self.units:
            raise ValueError(f"A tied embedding has the size of the units: {self.embedding} is not {self.units}.")


class RecurrentLM(Stateful):
    """Embedded tokens → LSTM or GRU → one linear layer over the vocabulary. There is no longest text."""

    config_class = RecurrentConfig
    _tied_weights_keys = {"lm_head.weight": "embed_tokens.weight"}  # noqa: RUF012 - as transformers has it

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding)
        self.rnn = build_recurrence(
            config.cell, config.embedding, config.units, layers=config.layers, dropout=config.dropout
        )
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
            use_cache: Whether the state after the last step is wanted.
            logits_to_keep: The last so many steps (0: all), or which.
            return_dict: Taken for granted.
        """
        embedded = self.dropout(self.embed_tokens(input_ids))
        outputs, state = run_recurrence(self.rnn, embedded, past_key_values, attention_mask, final=use_cache)
        logits = self.lm_head(select_steps(self.dropout(outputs), logits_to_keep))
        loss = compute_next_token_loss(logits, labels)
        return StatefulOutput(loss=loss, logits=logits, past_key_values=state if use_cache else None)
