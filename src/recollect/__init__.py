"""Recollect: what does a trained model remember of the data it was trained on?

Importing this loads neither torch nor transformers: the two functions come with them when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.corpora import read_corpus as read_corpus
    from recollect.models import load_model as load_model

__all__ = ["__version__", "load_model", "read_corpus"]
__version__ = "0.1.0"

_HOMES = {"load_model": "recollect.models", "read_corpus": "recollect.corpora"}


def __getattr__(name: str) -> Any:
    """The functions that are worth waiting for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
