"""What our generating models share: weights drawn as torch draws them, and a state that `generate()` carries along."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.utils.generic import ModelOutput

from recollect.models.architectures.recurrent_layers import State


class PlainModel(PreTrainedModel):
    """A model whose layers are torch's own, with torch's own initial weights."""

    def _init_weights(self, module: nn.Module) -> None:
        """Draw the weights of a layer of a stateful or plain model anew, unless they were loaded."""
        if isinstance(module, nn.RNNBase):
            for parameter in module.parameters(recurse=False):
                init.uniform_(parameter, -(module.hidden_size**-0.5), module.hidden_size**-0.5)
        elif isinstance(module, nn.Linear | nn.Conv1d):
            bound = float(module.weight[0].numel()) ** -0.5
            init.uniform_(module.weight, -bound, bound)
            if module.bias is not None:
                init.uniform_(module.bias, -bound, bound)
        elif isinstance(module, nn.Embedding):
            # An embedding that is also the output layer must be small, or the first predictions are certain.
            init.normal_(module.weight, std=module.embedding_dim**-0.5 if self.config.tie_word_embeddings else 1.0)


class Stateful(PlainModel, GenerationMixin):
    """A generating model that remembers by a state of fixed size, a tuple of tensors with sequences first.

    It goes in and out under the name that `transformers` has for what a model remembers, `past_key_values`.
    """

    _is_stateful = True

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        """No: the state is the model's own."""
        return False

    @staticmethod
    def _reorder_cache(past_key_values: State, beam_idx: Tensor) -> State:
        """The states of the beams that continue."""
        return tuple(piece.index_select(0, beam_idx.to(piece.device)) for piece in past_key_values)


@dataclass
class StatefulOutput(ModelOutput):
    """What a causal model gives."""

    loss: Tensor | None = None
    """The mean over all labels, in nats, if labels were given."""
    logits: Tensor | None = None
    """[sequences, steps, vocabulary]."""
    past_key_values: State | None = None
    """The state after the last step, if wanted."""


class TokenConfig(PreTrainedConfig):
    """What every configuration over tokens says."""

    vocab_size: int = 50
    embedding: int = 128
    """How many numbers stand for a token."""
    dropout: float = 0.0
    """On embedded tokens, between layers, and before the output layer."""
    tie_word_embeddings: bool = False
    pad_token_id: int | None = None
    bos_token_id: int | None = None
    eos_token_id: int | None = None


def select_steps(hidden: Tensor, logits_to_keep: int | Tensor) -> Tensor:
    """The steps of a stateful model whose logits are wanted: the last so many (0 for all), or those given."""
    if isinstance(logits_to_keep, Tensor):
        return hidden[:, logits_to_keep]
    return hidden[:, -logits_to_keep:] if logits_to_keep else hidden


def compute_next_token_loss(logits: Tensor, labels: Tensor | None) -> Tensor | None:
    """The loss of a stateful model over labels other than -100, each predicted by the step before it; in nats.

    Labels are shifted here, as everywhere in `transformers`: give the inputs themselves.
    """
    if labels is None:
        return None
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten(), ignore_index=-100)
