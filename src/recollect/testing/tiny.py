"""Tiny language models with random weights, built in code: for tests of everything that scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect import labels
from recollect.checks import check_one_of
from recollect.digests import digest

if TYPE_CHECKING:
    from recollect.models.loading.pretrained import Pretrained
    from recollect.models.model import Precision

TEXTS = (
    "The quick brown fox jumps over the lazy dog, again and again and again.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Съешь!",
    "春眠不覚暁、処処聞啼鳥。夜来風雨声、花落知多少。",
    "Zażółć gęślą jaźń; e\u0301te\u0301 nai\u0308f — n\u0303andu\u0301.",
    "🙂 smile 👩‍👩‍👧‍👦 family 🏳️‍🌈 flag 1️⃣2️⃣ keycaps",
)
"""Some text in several scripts, on which the tokenizers are trained."""

_SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4},
    "llama": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2},
    "gemma2": {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "sliding_window": 16,
        "final_logit_softcapping": 3.0,
    },
    "opt": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "word_embed_proj_dim": 32},
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
    "bert": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    "roberta": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    "t5": {"d_model": 32, "d_kv": 8, "num_layers": 2, "num_heads": 4},
    "bart": {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
    },
}
"""The sizes of each family, under the names that its configuration has for them."""
_WIDE = ("intermediate_size", "ffn_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner")
_CLASSES = {
    **dict.fromkeys(("gpt2", "llama", "gemma2", "opt", "mamba"), "AutoModelForCausalLM"),
    **dict.fromkeys(("bert", "roberta"), "AutoModelForMaskedLM"),
    **dict.fromkeys(("t5", "bart"), "AutoModelForSeq2SeqLM"),
}
_AROUND = {
    "llama": ("<s>", None),
    "gemma2": ("<s>", None),
    "opt": ("</s>", None),
    "bert": ("[CLS]", "[SEP]"),
    "roberta": ("<s>", "</s>"),
    "bart": ("<s>", "</s>"),
    "t5": (None, "</s>"),
}
"""What the family's tokenizer puts before and after a text."""


def build_tiny_tokenizer(*, before: str | None = None, after: str | None = None) -> Any:
    """A byte-level BPE tokenizer of 400 tokens with those that a text is put between.

    Args:
        before: A special token that the tokenizer itself puts before every text.
        after: One that it puts after every text.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<s>", "</s>", "<unk>", "<mask>", "[CLS]", "[SEP]"]
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(
        TEXTS * 2,
        trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=special, show_progress=False),
    )
    around = [token for token in (before, after) if token]
    if around:
        backend.post_processor = processors.TemplateProcessing(
            single=" ".join(piece for piece in (before, "$A", after) if piece),
            special_tokens=[(token, special.index(token)) for token in around],
        )
    roles = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "mask_token": "<mask>"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **roles)


def build_tiny_model(
    family: str,
    *,
    window: int = 64,
    precision: Precision = "float32",
    seed: int = 0,
    card: Mapping[str, Any] | None = None,
) -> Pretrained:
    """A model of that family with weights drawn at random, large enough that its predictions differ.

    Args:
        family: As `transformers` names it: gpt2, llama, gemma2, opt, mamba, bert, roberta, t5, bart.
        window: How many tokens it can read at once, where the family has a limit.
        precision: What it computes in.
        seed: Another seed, another model.
        card: What the card beside its weights would say.
    """
    import torch
    from transformers import AutoConfig

    from recollect.models.loading.pretrained import Pretrained, settle_network

    check_one_of(_SIZES, family=family)
    before, after = _AROUND.get(family, (None, None))
    tokenizer = build_tiny_tokenizer(before=before, after=after)
    config = AutoConfig.for_model(family, **_SIZES[family], **_build_token_config(tokenizer))
    # RoBERTa leaves the first places of its table to padding
    positions = window + (config.pad_token_id + 1 if family == "roberta" else 0)
    for name, size in {**dict.fromkeys(_WIDE, 64), "max_position_embeddings": positions}.items():
        if hasattr(config, name):
            setattr(config, name, size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _draw_network(family, config)
    return Pretrained(
        name=f"tiny-{family}",
        network=settle_network(network, precision, torch.device("cpu")),
        tokenizer=tokenizer,
        digest=digest(labels.DIGEST_TINY, family, window, seed),
        card=card or {},
    )


def save_tiny(pretrained: Pretrained, folder: Path) -> Path:
    """Write the model as `transformers` does, with its card; returns the folder."""
    from recollect.files import write_json

    pretrained.network.save_pretrained(folder)
    pretrained.tokenizer.save_pretrained(folder)
    if pretrained.card:
        write_json(folder / "card.json", dict(pretrained.card))
    return folder


def _build_token_config(tokenizer: Any) -> dict[str, int]:
    """What the configuration of a tiny model must know of its tokenizer."""
    return {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "decoder_start_token_id": tokenizer.eos_token_id,
    }


def _draw_network(family: str, config: Any) -> Any:
    """The tiny network, its weights large enough that what was read before matters."""
    import torch
    import transformers

    network = getattr(transformers, _CLASSES[family]).from_config(config)
    with torch.no_grad():
        for name, weights in network.named_parameters():
            if weights.dim() > 1:
                weights.normal_(std=0.3)
            elif name.endswith("bias"):
                weights.normal_(std=0.1)
    return network
