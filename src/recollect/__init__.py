"""Recollect: what does a trained model remember of the data it was trained on?

Importing this loads neither torch nor transformers: every function comes with what it needs when it is first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from recollect.version import __version__

if TYPE_CHECKING:
    from collections.abc import Collection

    from recollect.api import check as check
    from recollect.api import clean as clean
    from recollect.api import compare as compare
    from recollect.api import evaluate as evaluate
    from recollect.api import forget as forget
    from recollect.api import plant as plant
    from recollect.api import run as run
    from recollect.api import sanitise as sanitise
    from recollect.api import score as score
    from recollect.api import to_mlflow as to_mlflow
    from recollect.api import to_model_card as to_model_card
    from recollect.api import to_tensorboard as to_tensorboard
    from recollect.api import to_wandb as to_wandb
    from recollect.api import train as train
    from recollect.api import verify as verify
    from recollect.corpora import read_corpus as read_corpus
    from recollect.models import load_model as load_model
    from recollect.pipeline.plans.own_audits import register_audit as register_audit
    from recollect.pipeline.plans.refs import CorpusRef as CorpusRef
    from recollect.pipeline.plans.refs import ModelRef as ModelRef
    from recollect.results.result import Result as Result
    from recollect.session import AuditResult as AuditResult
    from recollect.session import Session as Session
    from recollect.signals.registry import register_signal as register_signal

_HOMES = {
    **dict.fromkeys(("check", "clean", "compare", "evaluate", "forget", "plant", "run"), "recollect.api"),
    **dict.fromkeys(("to_mlflow", "to_model_card", "to_tensorboard", "to_wandb"), "recollect.api"),
    **dict.fromkeys(("sanitise", "score", "train", "verify"), "recollect.api"),
    **dict.fromkeys(("AuditResult", "Session"), "recollect.session"),
    **dict.fromkeys(("CorpusRef", "ModelRef"), "recollect.pipeline.plans.refs"),
    "Result": "recollect.results.result",
    "load_model": "recollect.models",
    "read_corpus": "recollect.corpora",
    "register_audit": "recollect.pipeline.plans.own_audits",
    "register_signal": "recollect.signals.registry",
}
_AUDITS = ("exposure", "extract", "leakage", "membership", "provenance", "removal")
"""The verbs of our own audits; those of plug-ins and of registered audits are found as well, by their names."""

__all__ = ["__version__", *_AUDITS, *_HOMES]  # noqa: PLE0604 - names from the table above


def __getattr__(name: str) -> Any:
    """The functions that are worth waiting for: one per verb, and what they take and give."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    # `from recollect import labels` asks for its own modules here first; those are no reason to look for plug-ins
    is_module = find_spec(f"{__name__}.{name}") is not None
    if name in _AUDITS or name in _list_registered() or (not is_module and name in _list_plugins()):
        return import_module("recollect.api").build_verb_function(name)
    raise AttributeError(f"module 'recollect' has no attribute {name!r}")


def _list_registered() -> Collection[str]:
    """The verbs of audits that this process registered; none, if nothing was loaded with which it could."""
    registry = sys.modules.get("recollect.audits.registry")
    return () if registry is None else registry.AUDITS.registered


def _list_plugins() -> set[str]:
    """The verbs of installed plug-ins."""
    from importlib.metadata import entry_points

    return {entry.name for entry in entry_points(group="recollect.audits")}


def __dir__() -> list[str]:
    return sorted({*__all__, *_list_plugins()})
