"""PEFT adapters (LoRA and its kin) on a base model, loaded as trained: never merged, so nothing is rounded away."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from recollect import labels
from recollect.digests import Json
from recollect.errors import MissingDependency, ModelError
from recollect.models.loading.adapter_bases import ADAPTER_CONFIG
from recollect.models.loading.devices import DevicePlacement
from recollect.models.loading.model_digests import combine_descriptions, describe_tensors, drop_volatile_keys
from recollect.models.loading.model_folders import Files, read_settings
from recollect.models.loading.pretrained import (
    LoadedNetwork,
    infer_kind,
    infer_kind_of_class,
    read_pretrained_config,
    read_pretrained_network,
    silence_libraries,
)
from recollect.models.loading.pretrained_checks import abbreviate_names
from recollect.models.loading.shared_bases import clone_network, open_base
from recollect.models.model import Kind
from recollect.models.model_options import Loading
from recollect.models.model_strings import AdapterRef

_TASKS: dict[str | None, Kind] = {"CAUSAL_LM": "causal", "SEQ_2_SEQ_LM": "seq2seq", "SEQ_CLS": "classifier"}


def open_adapter(
    name: AdapterRef, files: Files, kind: Kind | None, placement: DevicePlacement, loading: Loading
) -> LoadedNetwork:
    """The base model with the adapter in place; the base's weights are shared with other adapters on it.

    Args:
        name: Base and adapter as the user named them.
        files: Where they are.
        kind: What it is to predict, where that is not to be read from the adapter.
        placement: In what precision and where it computes.
        loading: With how many bits, and what computes attention.

    Raises:
        MissingDependency: peft is not installed.
        ModelError: The two do not belong together.
    """
    peft, base, adapter = _import_peft(), str(name.base), str(name.adapter)
    folder, adapter_folder = files.folder, files.adapter or files.folder
    settings, config = read_settings(adapter_folder / ADAPTER_CONFIG, adapter), read_pretrained_config(folder, base)
    kind = kind or _TASKS.get(settings.get("task_type")) or infer_kind(config, base)
    supplied, known = settings.get("modules_to_save") or [], dict[str, str]()
    if supplied or not loading.is_plain:
        # what the adapter replaces may be missing from its base, which nobody else can then use
        network = read_pretrained_network(folder, base, config=config, kind=kind, supplied=supplied, loading=loading)
    else:
        shared = open_base(folder, base, kind=kind, dtype=placement.dtype, device=placement.device)
        network, known = shared.copy(base), shared.descriptions
    with silence_libraries(str(name), "The adapter does not fit its base", code="adapter_misfit"):
        peft_model = peft.PeftModel.from_pretrained(network, str(adapter_folder))
        stored = set(peft.load_peft_weights(str(adapter_folder), device="cpu"))
    _refuse_misfit_adapter(peft_model, stored, adapter, base)
    return LoadedNetwork(
        network=peft_model.get_base_model(),
        kind=kind,
        folder=adapter_folder if (adapter_folder / "tokenizer_config.json").is_file() else folder,
        notes={labels.MODEL_ADAPTER: _normalise_adapter_settings(settings)},
        weights=_digest_active_weights(peft_model.get_base_model(), peft_model.active_adapter, known),
    )


def open_adapter_in_memory(peft_model: Any, name: str, kind: Kind | None) -> LoadedNetwork:
    """A PEFT model as it is now, without changing it: the same weights and digest as BASE+ADAPTER from folders.

    Raises:
        ModelError: Its adapter is not what computes: switched off, merged, or one of several at once.
    """
    _refuse_prompt_learning(peft_model, name)
    status = peft_model.get_model_status()
    if status.enabled is not True or status.merged_adapters or len(status.active_adapters) != 1:
        raise ModelError(
            f"Of the adapters of model {name!r}, {status.active_adapters} are active and {status.merged_adapters} "
            f"merged; they are switched {'on' if status.enabled is True else 'off'}.",
            do="Switch exactly one on, without merging it; or save the merged model and give its folder.",
            code="adapter_not_active",
        )
    (active,) = status.active_adapters
    copied = clone_network(peft_model, name=name)
    for other in set(copied.peft_config) - {active}:
        copied.delete_adapter(other)
    settings, network = _serialise_adapter_settings(copied, active), copied.get_base_model()
    return LoadedNetwork(
        network=network,
        kind=kind or _TASKS.get(settings.get("task_type")) or infer_kind_of_class(network),
        folder=None,
        notes={labels.MODEL_ADAPTER: _normalise_adapter_settings(settings)},
        weights=_digest_active_weights(network, active, {}),
    )


def remove_adapters(peft_model: Any, name: str) -> Any:
    """The network of a PEFT model without its adapters, which the PEFT model keeps."""
    _refuse_prompt_learning(peft_model, name)
    return clone_network(peft_model, name=name).unload()


def _digest_active_weights(network: Any, adapter: str, known: Mapping[str, str]) -> str:
    """The digest of the weights that compute, as if the adapter were called `default`.

    An adapter may bring layers of its own. Those that they stand in for compute nothing, and where the base has none
    they are drawn at random. Weights of the adapter are described in single precision: in which one peft holds them
    depends on that of the base.

    Args:
        network: The network with the adapter in place.
        adapter: What the adapter is called.
        known: Descriptions of the base's own weights, as far as they are known.
    """
    found, unknown = dict[str, str](), dict[str, Tensor]()
    for key, value in network.state_dict().items():
        path = key.split(".")
        if "original_module" in path:
            continue
        name = ".".join("default" if part == adapter else part for part in path)
        own = ".".join(part for part in path if part != "base_layer")
        if adapter in path:
            unknown[name] = value.float() if value.is_floating_point() else value
        elif own in known:
            found[name] = known[own]
        else:
            unknown[name] = value
    return combine_descriptions({**found, **describe_tensors(unknown)})


def _serialise_adapter_settings(peft_model: Any, active: str) -> dict[str, Any]:
    """The settings of an adapter as its folder would say them."""
    settings = peft_model.peft_config[active]
    custom = {}
    if settings.task_type is None:
        base = type(peft_model.get_base_model())
        custom = {"auto_mapping_dict": {"base_model_class": base.__name__, "parent_library": base.__module__}}
    with tempfile.TemporaryDirectory() as folder:
        settings.save_pretrained(folder, **custom)
        return read_settings(Path(folder) / ADAPTER_CONFIG, active)


def _import_peft() -> Any:
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


def _refuse_prompt_learning(peft_model: Any, adapter: str) -> None:
    """Refuse adapters that lengthen the text."""
    if peft_model.active_peft_config.is_prompt_learning:
        raise ModelError(
            f"The adapter {adapter!r} puts learnt vectors before the text (prompt learning), which shifts its tokens.",
            do="Use an adapter that changes weights, such as LoRA.",
            code="prompt_learning_adapter",
        )


def _refuse_misfit_adapter(peft_model: Any, stored: set[str], adapter: str, base: str) -> None:
    """Refuse an adapter of which something was left out or made up, and those that lengthen the text."""
    _refuse_prompt_learning(peft_model, adapter)
    wanted = set(_import_peft().get_peft_model_state_dict(peft_model, save_embedding_layers=False))
    # embeddings are stored beside the adapter when they were resized, whether or not it adapts them
    surplus = sorted(name for name in stored - wanted if "embed" not in name and "lm_head" not in name)
    if missing := sorted(wanted - stored):
        raise ModelError(
            f"The adapter {adapter!r} lacks weights for {base!r}: {abbreviate_names(missing)}.",
            do=_OTHER_BASE,
            code="adapter_lacks_weights",
        )
    if surplus:
        raise ModelError(
            f"The base {base!r} has no place for weights of {adapter!r}: {abbreviate_names(surplus)}.",
            do=_OTHER_BASE,
            code="adapter_of_another_base",
        )


_OTHER_BASE = "Name the base that the adapter was trained on."


def _normalise_adapter_settings(settings: dict[str, Any]) -> Json:
    """The adapter's settings without notes; lists of names in order, for they were sets."""
    kept = drop_volatile_keys(settings)
    assert isinstance(kept, dict)  # noqa: S101 - a mapping stays one
    return {key: sorted(value) if isinstance(value, list) else value for key, value in kept.items()}
