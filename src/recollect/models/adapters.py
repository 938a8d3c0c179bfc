"""PEFT adapters (LoRA and its kin) on a base model, loaded as trained: never merged, so nothing is rounded away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect import labels
from recollect.digests import Json
from recollect.errors import MissingDependency, ModelError
from recollect.models.digesting import meaningful
from recollect.models.folders import read_settings
from recollect.models.model import Kind
from recollect.models.pretrained import Opened, kind_of, quietly, read_config, read_network, some
from recollect.models.refs import Adapted

_TASKS: dict[str | None, Kind] = {"CAUSAL_LM": "causal", "SEQ_2_SEQ_LM": "seq2seq", "SEQ_CLS": "classifier"}


def open_adapted(name: Adapted, folder: Path, own: Path, kind: Kind | None) -> Opened:
    """The base model with the adapter in place.

    Args:
        name: Base and adapter as the user named them.
        folder: Where the base lies.
        own: Where the adapter lies.
        kind: What it is to predict, where that is not to be read from the adapter.

    Raises:
        MissingDependency: peft is not installed.
        ModelError: The two do not belong together.
    """
    peft, base, adapter = _peft(), str(name.base), str(name.adapter)
    settings, config = read_settings(own / "adapter_config.json", adapter), read_config(folder, base)
    kind = kind or _TASKS.get(settings.get("task_type")) or kind_of(config, base)
    supplied = settings.get("modules_to_save") or []
    network = read_network(folder, base, config=config, kind=kind, supplied=supplied)
    with quietly(str(name), "The adapter does not fit its base", code="adapter_misfit"):
        whole = peft.PeftModel.from_pretrained(network, str(own))
        stored = set(peft.load_peft_weights(str(own), device="cpu"))
    _refuse_unfitting(whole, stored, adapter, base)
    return Opened(
        network=whole.get_base_model(),
        kind=kind,
        folder=own if (own / "tokenizer_config.json").is_file() else folder,
        notes={labels.MODEL_ADAPTER: _settings_that_matter(settings)},
    )


def _peft() -> Any:
    """The library of adapters."""
    try:
        import peft
    except ImportError as error:
        raise MissingDependency(
            "A model named BASE+ADAPTER needs the package peft.",
            do="pip install 'recollect[peft]'",
            code="peft_missing",
        ) from error
    return peft


def _refuse_unfitting(whole: Any, stored: set[str], adapter: str, base: str) -> None:
    """Refuse an adapter of which something was left out or made up, and those that lengthen the text."""
    if whole.active_peft_config.is_prompt_learning:
        raise ModelError(
            f"The adapter {adapter!r} puts learnt vectors before the text, so its symbols stand elsewhere.",
            do="Use an adapter that changes weights, such as LoRA.",
            code="prompt_learning_adapter",
        )
    wanted = set(_peft().get_peft_model_state_dict(whole, save_embedding_layers=False))
    # embeddings are stored beside the adapter when they were resized, whether or not it adapts them
    left = sorted(name for name in stored - wanted if "embed" not in name and "lm_head" not in name)
    if missing := sorted(wanted - stored):
        raise ModelError(
            f"The adapter {adapter!r} lacks weights for {base!r}: {some(missing)}.",
            do=_OTHER_BASE,
            code="adapter_lacks_weights",
        )
    if left:
        raise ModelError(
            f"The base {base!r} has no place for weights of {adapter!r}: {some(left)}.",
            do=_OTHER_BASE,
            code="adapter_of_another_base",
        )


_OTHER_BASE = "Name the base that the adapter was trained on."


def _settings_that_matter(settings: dict[str, Any]) -> Json:
    """The adapter's settings without notes; lists of names in order, for they were sets."""
    kept = meaningful(settings)
    assert isinstance(kept, dict)  # noqa: S101 - a mapping stays one
    return {key: sorted(value) if isinstance(value, list) else value for key, value in kept.items()}
