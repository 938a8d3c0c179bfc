"""The kind of a model and how it is loaded, as options name them; importing this costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Kind = Literal["causal", "masked", "seq2seq", "classifier"]
"""What a model predicts: next tokens, masked tokens, a target text, a label."""
Precision = Literal["float32", "float64", "float16", "bfloat16"]
"""What a model computes in."""
Attention = Literal["sdpa", "eager", "flash_attention_2"]
"""What computes attention. A model's own configuration never decides it, because it could name code of a hub."""
Bits = Literal["4bit", "8bit"]
"""To how many bits bitsandbytes rounds weights."""


ALL_DEVICES: Final = "auto"
"""The device that stands for all there are."""


@dataclass(frozen=True, kw_only=True)
class Loading:
    """How a model is brought into memory."""

    device: str | None = None
    """Where it computes; None for the best there is, `auto` for spread over all devices."""
    attention: Attention | None = None
    """What computes attention; None for `sdpa` where the architecture has it, else `eager`."""
    bits: Bits | None = None
    """Round weights to so many bits with bitsandbytes; the model then has a digest of its own."""
    keeps_precision: bool = False
    """Compute in what the weights are stored in, where the device does; else in what the question says."""
    work: Path | None = None
    """The work folder: a model in files whose answers are kept there is loaded only once something is computed."""

    @property
    def is_plain(self) -> bool:
        """Whether the model is whole on one device, as it is stored."""
        return self.attention is None and self.bits is None and self.device != ALL_DEVICES
