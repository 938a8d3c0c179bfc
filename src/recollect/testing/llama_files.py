"""Llama models as GGUF files, written in code: so that a real inference server can serve what a test has made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_NORMAL, _CONTROL = 1, 3
_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""What the weights of a layer are called there."""


def write_llama_file(
    network: Any, tokenizer: Any, path: Path, *, precision: Literal["F32", "F16"] = "F32", splits: str = "gpt-2"
) -> Path:
    """Write a Llama model of `transformers` with its byte-level BPE tokenizer; adapters must be merged before.

    Args:
        network: A LlamaForCausalLM.
        tokenizer: A fast tokenizer, or the path of a GGUF file whose tokenizer is copied key by key.
        path: The file.
        precision: Of the matrices; vectors are always F32.
        splits: How llama.cpp calls the way in which the tokenizer splits texts before BPE: gpt-2, smollm …; a file
            that is copied from says so itself.
    """
    import gguf

    config = network.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(_get_rope_base(config))
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32 if precision == "F32" else gguf.LlamaFileType.MOSTLY_F16)
    if isinstance(tokenizer, Path):
        _copy_tokenizer(writer, tokenizer)
    else:
        _add_tokenizer(writer, tokenizer, config, splits)
    for name, values in _iter_weights(network):
        writer.add_tensor(name, values.astype(np.float16) if precision == "F16" and values.ndim == 2 else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _copy_tokenizer(writer: Any, path: Path) -> None:
    """The tokenizer of another file, as it is."""
    import gguf

    for name, field in gguf.GGUFReader(path).fields.items():
        if name.startswith("tokenizer."):
            kind, *of = field.types
            writer.add_key_value(name, field.contents(), kind, *of)


def _add_tokenizer(writer: Any, tokenizer: Any, config: Any, splits: str) -> None:
    """The tokenizer of a llama file: tokens, their kinds, and merges."""
    described = json.loads(tokenizer.backend_tokenizer.to_str())
    vocabulary = {number: token for token, number in tokenizer.get_vocab().items()}
    tokens = [vocabulary.get(i, f"<unused {i}>") for i in range(config.vocab_size)]
    special = set(tokenizer.all_special_ids) | {each["id"] for each in described["added_tokens"] if each["special"]}
    merges = [each if isinstance(each, str) else " ".join(each) for each in described["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(splits)
    writer.add_token_list(tokens)
    writer.add_token_types([_CONTROL if i in special or i not in vocabulary else _NORMAL for i in range(len(tokens))])
    writer.add_token_merges(merges)
    for add, number in (
        (writer.add_bos_token_id, tokenizer.bos_token_id),
        (writer.add_eos_token_id, tokenizer.eos_token_id),
        (writer.add_pad_token_id, tokenizer.pad_token_id),
    ):
        if number is not None:
            add(number)
    writer.add_add_bos_token(tokenizer("a")["input_ids"][0] == tokenizer.bos_token_id)
    writer.add_add_space_prefix(False)


def _iter_weights(network: Any) -> Any:
    """All weights under their names in a llama file."""
    config, state = network.config, network.state_dict()

    def get(name: str) -> NDArray[np.float32]:
        values: NDArray[np.float32] = state[name].detach().float().cpu().numpy()
        return values

    yield "token_embd.weight", get("model.embed_tokens.weight")
    yield "output_norm.weight", get("model.norm.weight")
    if not config.tie_word_embeddings:
        yield "output.weight", get("lm_head.weight")
    for layer in range(config.num_hidden_layers):
        for theirs, ours in _LAYER.items():
            values = get(f"model.layers.{layer}.{theirs}.weight")
            heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(ours)
            yield f"blk.{layer}.{ours}.weight", values if heads is None else _interleave(values, heads)


def _interleave(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Queries or keys in the order in which llama.cpp rotates them: in pairs."""
    halves = values.reshape(heads, 2, values.shape[0] // heads // 2, values.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(values.shape))


def _get_rope_base(config: Any) -> float:
    """The base of the rotary positions for a llama file, wherever this version of transformers keeps it."""
    parameters = getattr(config, "rope_parameters", None) or {}
    return float(parameters.get("rope_theta", getattr(config, "rope_theta", 10_000.0)))
