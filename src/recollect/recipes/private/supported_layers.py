"""Which models can be trained privately; all others are refused by the name of the layer that is in the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from recollect.errors import ModelError
from recollect.recipes.private.per_record_gradients import get_formula

_SUPPORTED = "linear, embedding, convolution, LSTM and GRU layers, and layer, group and RMS norms"


def check_layers(model: nn.Module, unit: Literal["record", "user"]) -> None:
    """Refuse a model that mixes records of a batch, or whose gradients are not known record by record.

    A user's gradient is that of a whole batch, which any layer has; only what is kept from batch to batch is refused.

    Raises:
        ModelError: Names the first layer in the way, and what to use instead.
    """
    for name, layer in model.named_modules():
        _refuse_mixing_layer(name, layer)
    if unit == "record":
        _refuse_unsupported_layers(model)
        _refuse_tied_weights(model)


def _refuse_mixing_layer(name: str, layer: nn.Module) -> None:
    """Refuse layers in which a record's output depends on the other records, trained or not."""
    if isinstance(layer, _BatchNorm):
        raise ModelError(
            f"Layer {name!r} ({type(layer).__name__}) mixes the records of a batch and keeps their means, so no "
            "record's influence can be bounded.",
            do="Use group norm instead (`--set model.norm=group` for a ResNet).",
            code="batch_norm",
        )
    if isinstance(layer, nn.modules.instancenorm._InstanceNorm) and layer.track_running_stats:
        raise ModelError(
            f"Layer {name!r} ({type(layer).__name__}) keeps running statistics over records.",
            do="Use it without running statistics, or use group norm.",
            code="running_statistics",
        )


def _refuse_unsupported_layers(model: nn.Module) -> None:
    """Refuse layers without a formula."""
    for name, layer in model.named_modules():
        for own, parameter in layer.named_parameters(recurse=False):
            if parameter.requires_grad and not _is_supported(layer) and not _is_duplicate(model, layer, parameter):
                raise ModelError(
                    f"Layer {name!r} ({type(layer).__name__}) trains {own!r}, whose gradients are not known record by "
                    "record.",
                    do=f"Freeze it, or use a model of {_SUPPORTED}.",
                    code="no_gradient_formula",
                )


def _is_supported(layer: nn.Module) -> bool:
    """Whether the layer's per-record gradients are known."""
    if isinstance(layer, nn.LSTM | nn.GRU):
        return layer.proj_size == 0
    return get_formula(layer) is not None


def _is_duplicate(model: nn.Module, layer: nn.Module, parameter: nn.Parameter) -> bool:
    """Whether it is a second name of a known layer's parameter, or the one that BERT uses only when it is tied."""
    if type(layer).__name__ == "BertLMPredictionHead":
        return True
    return any(
        own is parameter for other in model.modules() if _is_supported(other) for own in other.parameters(recurse=False)
    )


def _refuse_tied_weights(model: nn.Module) -> None:
    """Refuse weights that two layers share."""
    first: dict[nn.Parameter, str] = {}
    for name, parameter in _iter_trained_parameters(model):
        if parameter in first:
            raise ModelError(
                f"Layer {name.rpartition('.')[0]!r} shares its weights with {first[parameter].rpartition('.')[0]!r}.",
                do="Untie them (`--set model.config.tie_word_embeddings=false` for a transformer).",
                code="tied_weights",
            )
        first[parameter] = name


def _iter_trained_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The trained parameters of the layers that are known, under the name that each layer gives them."""
    for name, layer in model.named_modules():
        if _is_supported(layer):
            for own, parameter in layer.named_parameters(recurse=False):
                if parameter.requires_grad:
                    yield f"{name}.{own}", parameter
