"""A language model so small that float32 decides every rank: a Llama of two layers and 512 tokens.

    python studies/servers/small_model.py DATA FOLDER TEXTS.jsonl [--seed 0]

It is trained on Reddit comments for about a minute, and saved in FOLDER with its tokenizer. TEXTS.jsonl receives 300
comments of other users, which a comparison scores.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END = "<|end|>"
VOCABULARY, WIDTH, STEPS, BATCH, LENGTH = 512, 128, 400, 16, 64
TRAINED, SCORED = 4000, 300
"""Comments."""
WORDS = (8, 60)


def read_comments(data: Path) -> list[str]:
    """As many different comments of some length as are needed, in the order of the file, which is by user."""
    found: dict[str, None] = {}
    with gzip.open(data / "reddit_comments" / "comments.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            text = " ".join(row["text"].split())
            if WORDS[0] <= len(text.split()) <= WORDS[1]:
                found[text] = None
            if len(found) == TRAINED + SCORED:
                break
    return list(found)


def train_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    """Byte pairs, with a start token that is before no text."""
    own = Tokenizer(models.BPE())
    own.pre_tokenizer, own.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=[END], initial_alphabet=alphabet)
    own.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=own, bos_token=END, eos_token=END)


def train(texts: list[str], tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """The trained model."""
    torch.manual_seed(seed)
    end = tokenizer.eos_token_id
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=3 * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=end,
        eos_token_id=end,
    )
    network: Any = LlamaForCausalLM(config).train()
    stream = torch.tensor([token for ids in tokenizer(texts)["input_ids"] for token in [end, *ids]])
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)
    for step in range(STEPS):
        starts = torch.randint(len(stream) - LENGTH, (BATCH,))
        batch = torch.stack([stream[start : start + LENGTH] for start in starts.tolist()])
        loss = network(batch, labels=batch).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)
    return network.eval()


def main() -> None:
    """Train, save, and write the texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "folder", "texts"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    comments = read_comments(given.data)
    tokenizer = train_tokenizer(comments[:TRAINED])
    train(comments[:TRAINED], tokenizer, given.seed).save_pretrained(given.folder)
    tokenizer.save_pretrained(given.folder)
    lines = [json.dumps({"text": text}) for text in comments[TRAINED:]]
    given.texts.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
