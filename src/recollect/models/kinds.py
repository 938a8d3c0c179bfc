"""What models are distinguished by; importing this costs nothing."""

from __future__ import annotations

from typing import Literal

Kind = Literal["causal", "masked", "seq2seq", "classifier"]
"""What a model predicts: next tokens, masked tokens, a target text, a label."""
Precision = Literal["float32", "float64", "float16", "bfloat16"]
"""What a model computes in."""
Attention = Literal["sdpa", "eager", "flash_attention_2"]
"""What computes attention. A model's own configuration never decides it, because it could name code of a hub."""
Bits = Literal["4bit", "8bit"]
"""To how many bits bitsandbytes rounds weights."""
