"""Our own models, in plain torch, known to the Auto classes of `transformers` once this is imported."""

from __future__ import annotations

from transformers import AutoConfig, AutoModelForCausalLM

from recollect.models.architectures.recurrent import RecurrentConfig, RecurrentLM

__all__ = ["RecurrentConfig", "RecurrentLM"]

AutoConfig.register(RecurrentConfig.model_type, RecurrentConfig, exist_ok=True)
AutoModelForCausalLM.register(RecurrentConfig, RecurrentLM, exist_ok=True)
