"""From a recipe to a tokenizer and a model with its first weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from transformers import AutoConfig, PreTrainedConfig
from transformers.pytorch_utils import Conv1D

from recollect import labels
from recollect.checks import suggest_name
from recollect.errors import MissingDependency, PlanError
from recollect.models import architectures
from recollect.models.hugging_face.causal import get_start_token
from recollect.models.loading.adapter_bases import get_base_statement
from recollect.models.loading.model_cards import read_card
from recollect.models.loading.model_folders import find_checkpoint_folder, find_folder
from recollect.models.loading.pretrained import read_pretrained_config, read_pretrained_network, read_tokenizer
from recollect.models.loading.shared_bases import open_base_for_training
from recollect.models.tokens.tokenization import TextEncoder
from recollect.recipes.data.sequences import SpecialTokens
from recollect.recipes.data.tokenizers import train_bpe_tokenizer, train_character_tokenizer, train_word_tokenizer
from recollect.recipes.recipe import Adapter, Perceptron, Recipe, ResNet, Task, Tokenizer, Transformer
from recollect.streams import derive_seed

_AUTO_CLASSES: dict[Task, str] = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "classifier": "AutoModelForSequenceClassification",
}
_OWN_CLASSES = {
    "recurrent": (architectures.RecurrentConfig, architectures.RecurrentLM),
    "convolutional": (architectures.ConvolutionalConfig, architectures.ConvolutionalLM),
    "recurrent-seq2seq": (architectures.TranslatingConfig, architectures.TranslatingLM),
}
_MASK_TOKEN = "< mask >"  # noqa: S105 - no password


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """What a model must know of the data before it is made."""

    labels: tuple[str, ...] = ()
    """The names of the classes, in the order of the outputs."""
    shape: tuple[int, ...] = ()
    """Of one array, channels first."""


def build_tokenizer(recipe: Recipe, texts: Iterable[str]) -> Any:
    """The tokenizer of a recipe: its checkpoint's own, or one made from the texts; None for models of arrays."""
    if recipe.tokenizer is None:
        return None
    tokenizer = _build_tokenizer(recipe, texts)
    if recipe.sequences.chat_template is not None:
        tokenizer.chat_template = recipe.sequences.chat_template
    return tokenizer


def _build_tokenizer(recipe: Recipe, texts: Iterable[str]) -> Any:
    """The tokenizer of a checkpoint, or one made from the texts."""
    if recipe.model.start is not None:
        return read_tokenizer(find_checkpoint_folder(recipe.model.start), recipe.model.start)
    assert recipe.tokenizer is not None  # noqa: S101 - models of arrays have none
    # a causal model ends a text itself, and a decoder begins with a token of its own
    special_tokens = {"begin": recipe.task != "seq2seq", "end": recipe.task != "causal"}
    tokenizer = _train_tokenizer(recipe.tokenizer, texts, special_tokens)
    if recipe.task == "masked":
        tokenizer.add_special_tokens({"mask_token": _MASK_TOKEN})
    return tokenizer


def _train_tokenizer(settings: Tokenizer, texts: Iterable[str], special_tokens: dict[str, bool]) -> Any:
    """The tokenizer that goes with a model to be built, made from texts."""
    if settings.kind == "characters":
        return train_character_tokenizer(texts, force=[settings.forced], **special_tokens)
    forced = settings.forced.split()
    if settings.kind == "words":
        return train_word_tokenizer(texts, settings.size, lower=settings.lowercase, force=forced, **special_tokens)
    return train_bpe_tokenizer(texts, settings.size, force=forced, **special_tokens)


def get_special_tokens(tokenizer: Any, recipe: Recipe) -> SpecialTokens:
    """The tokens that are around a text, as the models' scoring puts them there, and the one that fills up rows.

    A causal model also learns where a text ends, and where it begins even if its tokenizer would not say. One that
    starts from a checkpoint goes on reading texts as that does, so that the two can be compared token by token.
    """
    encoder = TextEncoder(tokenizer)
    before, after = tuple(encoder.prefix_ids), tuple(encoder.suffix_ids)
    begin, end, padding = tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id
    if recipe.task == "causal":
        if recipe.model.start is not None:
            begin = read_start_token(recipe.model.start, tokenizer)
        before = before or (() if begin is None else (begin,))
        after = () if end is None else (end,)
    # what pads is never looked at, so any token will do where the tokenizer has none for it
    return SpecialTokens(padding=(end or 0) if padding is None else padding, before=before, after=after)


def read_start_token(start: str, tokenizer: Any) -> int | None:
    """The token before every text of a checkpoint that a model is built from, where its card names one."""
    return next(iter(get_start_token(read_card(find_folder(start)), tokenizer)), None)


def build_model(recipe: Recipe, tokenizer: Any, data: DataFacts, *, seed: int) -> Any:
    """The model of a recipe with its first weights, which depend on the seed alone; in training mode."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive_seed(seed, labels.STREAM_WEIGHTS) % 2**63)
        network = _load_start(recipe, data) if recipe.model.start is not None else _build_fresh(recipe, tokenizer, data)
        if isinstance(recipe.model, Transformer) and recipe.model.adapter is not None:
            network = _add_adapter(network, recipe.model.adapter, recipe)
    return network.train()


def _build_fresh(recipe: Recipe, tokenizer: Any, data: DataFacts) -> Any:
    """A model with random weights."""
    settings = recipe.model
    if isinstance(settings, Perceptron):
        inputs = int(torch.Size(data.shape).numel())
        named = {
            "inputs": inputs,
            "hidden": list(settings.hidden),
            "dropout": settings.dropout,
            **_describe_classes(data.labels),
        }
        return architectures.PerceptronClassifier(architectures.PerceptronConfig(**named))
    if isinstance(settings, ResNet):
        return _build_resnet(settings, data)
    if isinstance(settings, Transformer):
        return _build_transformer(settings, tokenizer, data)
    config, network = _OWN_CLASSES[settings.kind]
    sizes = settings.model_dump(exclude={"kind", "start"})
    return network(config(**sizes, **_describe_vocabulary(tokenizer, decoder=recipe.task == "seq2seq")))


def _build_resnet(settings: ResNet, data: DataFacts) -> Any:
    """A residual network of basic blocks."""
    grouped = settings.norm == "group"
    config = architectures.GroupedResNetConfig if grouped else transformers.ResNetConfig
    network: Any = architectures.GroupedResNet if grouped else transformers.ResNetForImageClassification
    sizes = config(
        num_channels=data.shape[0],
        embedding_size=settings.widths[0],
        hidden_sizes=list(settings.widths),
        depths=list(settings.depths),
        layer_type="basic",
        **_describe_classes(data.labels),
    )
    return network(sizes)


def _build_transformer(settings: Transformer, tokenizer: Any, data: DataFacts) -> Any:
    """A transformer of the transformers library."""
    config = _build_transformer_config(settings, tokenizer, data)
    try:
        return getattr(transformers, _AUTO_CLASSES[settings.task]).from_config(config)
    except ValueError as error:
        found = f"No {settings.task} model can be made of {settings.architecture} with model.config: {error}"
        raise PlanError(found, do="Change model.architecture or model.config.", code="architecture_refused") from error


def _build_transformer_config(settings: Transformer, tokenizer: Any, data: DataFacts) -> PreTrainedConfig:
    """The configuration that a recipe describes; a setting that it does not know is refused, not kept unread."""
    try:
        plain = AutoConfig.for_model(settings.architecture)
    except ValueError:
        near = suggest_name(settings.architecture, transformers.CONFIG_MAPPING.keys())
        do = f"{near}Use a model_type of the transformers library."
        raise PlanError(
            f"model.architecture is {settings.architecture!r}.", do=do, code="unknown_architecture"
        ) from None
    known = {*plain.to_dict(), *plain.attribute_map}
    for name in settings.config:
        if name not in known:
            do = f"{suggest_name(name, known)}See the documentation of {type(plain).__name__}."
            raise PlanError(
                f"model.config has no setting {name!r} for {settings.architecture}.",
                do=do,
                code="unknown_model_setting",
            )
    added = _describe_vocabulary(tokenizer, decoder=settings.task == "seq2seq")
    if settings.task == "classifier":
        added |= _describe_classes(data.labels)
    return AutoConfig.for_model(settings.architecture, **added, **settings.config)


def _describe_vocabulary(tokenizer: Any, *, decoder: bool) -> dict[str, Any]:
    """What the configuration of a model that is built says of the vocabulary."""
    begin = tokenizer.bos_token_id
    found = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, "bos_token_id": begin}
    return {**found, "eos_token_id": tokenizer.eos_token_id} | ({"decoder_start_token_id": begin} if decoder else {})


def _describe_classes(labels: Sequence[str]) -> dict[str, Any]:
    """What the configuration of a model that is built says of the classes."""
    numbered = list(enumerate(labels))
    return {"id2label": dict(numbered), "label2id": {label: i for i, label in numbered}}


def _load_start(recipe: Recipe, data: DataFacts) -> Any:
    """A model that continues from a checkpoint; a classifier may get a new output layer."""
    start = str(recipe.model.start)
    folder = find_checkpoint_folder(start)
    if recipe.task == "classifier":
        auto = "AutoModelForImageClassification" if recipe.tokenizer is None else _AUTO_CLASSES["classifier"]
        config = read_pretrained_config(folder, start)
        config.update(_describe_classes(data.labels))
        return getattr(transformers, auto).from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            weights_only=True,
            ignore_mismatched_sizes=True,
        )
    if isinstance(recipe.model, Transformer) and recipe.model.adapter is not None:
        return open_base_for_training(folder, start, kind=recipe.task)
    return read_pretrained_network(folder, start, config=read_pretrained_config(folder, start), kind=recipe.task)


def _add_adapter(network: Any, adapter: Adapter, recipe: Recipe) -> Any:
    """The model with low-rank adapters in place of trainable weights."""
    if recipe.model.start is None:
        raise PlanError(
            "model.adapter is set, but there is no model to adapt.",
            do="Set model.start to a checkpoint.",
            code="nothing_to_adapt",
        )
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError:
        raise MissingDependency(
            "Adapters need peft.", do="pip install 'recollect[peft]'", code="peft_missing"
        ) from None
    kinds = {"causal": "CAUSAL_LM", "seq2seq": "SEQ_2_SEQ_LM", "classifier": "SEQ_CLS"}
    config = LoraConfig(
        r=adapter.rank,
        lora_alpha=adapter.alpha,  # type: ignore[arg-type]
        lora_dropout=adapter.dropout,
        target_modules=None if adapter.targets is None else list(adapter.targets),
        task_type=kinds.get(recipe.task),
        # GPT-2 keeps its weights turned; peft would find out by itself, and warn
        fan_in_fan_out=any(isinstance(module, Conv1D) for module in network.modules()),
    )
    network.name_or_path, revision = get_base_statement(recipe.model.start)
    try:
        return get_peft_model(network, config, revision=revision)
    except ValueError as error:
        raise PlanError(
            f"The model {recipe.model.start!r} cannot be adapted: {str(error).splitlines()[0][:200]}",
            do="Set model.adapter.targets to names of its layers.",
            code="adapter_refused",
        ) from error
