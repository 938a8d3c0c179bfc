"""What models are distinguished by; importing this costs nothing."""

from __future__ import annotations

from typing import Literal

Kind = Literal["causal", "masked", "seq2seq", "classifier"]
"""What a model predicts: next tokens, masked tokens, a target text, a label."""
Precision = Literal["float32", "float64", "float16", "bfloat16"]
"""What a model computes in."""
