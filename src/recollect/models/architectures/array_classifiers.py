"""The multi-layer perceptron that classifies arrays (Huang et al. 2021: two hidden layers of 256)."""

from __future__ import annotations

from itertools import pairwise
from math import gcd

from torch import Tensor, nn
from transformers import PreTrainedConfig, ResNetConfig, ResNetForImageClassification
from transformers.modeling_outputs import ImageClassifierOutput

from recollect.models.architectures.stateful import PlainModel


class PerceptronConfig(PreTrainedConfig):
    """The sizes of a perceptron; `num_labels`, `id2label` and `label2id` as everywhere in `transformers`."""

    model_type = "recollect-perceptron"

    inputs: int = 28 * 28
    """How many numbers one array holds, whatever its shape."""
    hidden: list[int] | tuple[int, ...] = (256, 256)
    dropout: float = 0.0
    """After each hidden layer."""


class PerceptronClassifier(PlainModel):
    """A flattened array → hidden layers with ReLU → one linear layer over the classes."""

    config_class = PerceptronConfig
    main_input_name = "pixel_values"

    def __init__(self, config: PerceptronConfig) -> None:
        super().__init__(config)
        sizes = [config.inputs, *config.hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, units in pairwise(sizes):
            layers += [nn.Linear(inputs, units), nn.ReLU(), nn.Dropout(config.dropout)]
        self.body = nn.Sequential(*layers)
        self.classifier = nn.Linear(sizes[-1], int(config.num_labels or 2))
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(
        self, pixel_values: Tensor, labels: Tensor | None = None, return_dict: bool = True
    ) -> ImageClassifierOutput:
        """Logits of the classes.

        Args:
            pixel_values: Arrays [records, …] of `config.inputs` numbers each.
            labels: One class per record; adds the mean loss.
            return_dict: Taken for granted.
        """
        logits = self.classifier(self.body(pixel_values))
        loss = None if labels is None else nn.functional.cross_entropy(logits.float(), labels)
        return ImageClassifierOutput(loss=loss, logits=logits)  # type: ignore[arg-type]


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
