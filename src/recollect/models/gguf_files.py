"""Models in one GGUF file: transformers reads them and makes floating-point weights of the quantised ones."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from recollect.errors import MissingDependency
from recollect.models.kinds import Precision
from recollect.models.loading import StoredWeights, announce_upcast
from recollect.models.pretrained import LoadedNetwork, refuse_slow, silence_libraries

COMPUTED: Precision = "float32"
"""What quantised weights become: no more was stored, and nothing is rounded a second time."""


def open_gguf(path: Path, ref: str) -> tuple[LoadedNetwork, Any]:
    """The causal model in a file, and its tokenizer.

    Raises:
        MissingDependency: gguf is not installed.
        ModelError: The file is damaged, or of an architecture that transformers does not read.
    """
    try:
        import gguf  # noqa: F401 - transformers reads with it
    except ImportError as error:
        raise MissingDependency(
            f"The model {ref!r} is a GGUF file, which needs the package gguf.",
            do="pip install 'recollect[gguf]'",
            code="gguf_missing",
        ) from error
    with silence_libraries(ref, "The GGUF file cannot be read", code="gguf_unreadable"):
        stored = _count_weights(path)
    announce_upcast(ref, stored, COMPUTED, file="quantised")
    unreadable = silence_libraries(ref, "The GGUF file cannot be read", code="gguf_unreadable")
    with unreadable, redirect_stderr(io.StringIO()):  # a bar that transformers draws whatever it is told
        settings = {"gguf_file": path.name, "local_files_only": True, "trust_remote_code": False}
        network = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, **settings)
        tokenizer = AutoTokenizer.from_pretrained(path.parent, **settings)
    refuse_slow(tokenizer, ref)
    return LoadedNetwork(network=network, kind="causal", folder=None), tokenizer


def _count_weights(path: Path) -> StoredWeights:
    """How many weights a file holds."""
    from gguf import GGUFReader

    return StoredWeights(precision=COMPUTED, numbers=sum(int(each.n_elements) for each in GGUFReader(path).tensors))
