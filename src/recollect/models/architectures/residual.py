"""A residual network without batch norm: every record is normalised by itself, as differential privacy demands."""

from __future__ import annotations

from math import gcd

from torch import nn
from transformers import ResNetConfig, ResNetForImageClassification

_GROUPS = 32


class GroupedResNetConfig(ResNetConfig):
    """The sizes of a residual network with group norm."""

    model_type = "recollect-grouped-resnet"


class GroupedResNet(ResNetForImageClassification):
    """The residual network of `transformers` with group norm in the place of batch norm."""

    config_class = GroupedResNetConfig

    def __init__(self, config: GroupedResNetConfig) -> None:
        super().__init__(config)  # type: ignore[no-untyped-call]
        for module in list(self.modules()):
            for name, child in module.named_children():
                if isinstance(child, nn.BatchNorm2d):
                    channels = child.num_features
                    setattr(module, name, nn.GroupNorm(gcd(_GROUPS, channels), channels))
