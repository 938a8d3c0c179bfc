"""Our own models, in plain torch, known to the Auto classes of `transformers` once this is imported."""

from __future__ import annotations

from typing import Any

from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageClassification,
    AutoModelForSeq2SeqLM,
    PreTrainedConfig,
    PreTrainedModel,
)

from recollect.models.architectures.array_classifiers import (
    GroupedResNet,
    GroupedResNetConfig,
    PerceptronClassifier,
    PerceptronConfig,
)
from recollect.models.architectures.convolutional_lm import ConvolutionalConfig, ConvolutionalLM
from recollect.models.architectures.encoder_decoder import TranslatingConfig, TranslatingLM
from recollect.models.architectures.recurrent_lm import RecurrentConfig, RecurrentLM

__all__ = [
    "ConvolutionalConfig",
    "ConvolutionalLM",
    "GroupedResNet",
    "GroupedResNetConfig",
    "PerceptronClassifier",
    "PerceptronConfig",
    "RecurrentConfig",
    "RecurrentLM",
    "TranslatingConfig",
    "TranslatingLM",
]

_KNOWN: list[tuple[Any, type[PreTrainedConfig], type[PreTrainedModel]]] = [
    (AutoModelForCausalLM, RecurrentConfig, RecurrentLM),
    (AutoModelForCausalLM, ConvolutionalConfig, ConvolutionalLM),
    (AutoModelForSeq2SeqLM, TranslatingConfig, TranslatingLM),
    (AutoModelForImageClassification, PerceptronConfig, PerceptronClassifier),
    (AutoModelForImageClassification, GroupedResNetConfig, GroupedResNet),
]

for _auto, _config, _model in _KNOWN:
    AutoConfig.register(_config.model_type, _config, exist_ok=True)
    _auto.register(_config, _model, exist_ok=True)
