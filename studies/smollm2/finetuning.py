"""Fine-tuning as a team would write it: transformers, PEFT and a plain loop; nothing of Recollect takes part.

python finetuning.py lora BASE CORPUS.jsonl OUT
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

BATCH = 8
RATES = {"lora": 1e-3, "full": 5e-5, "rest": 1e-3, "ascent": 2e-4}
EPOCHS = {"lora": 2, "full": 2, "rest": 1, "ascent": 2}
LORA = {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"], "task_type": "CAUSAL_LM"}
Example = tuple[list[int], list[int]]
"""The tokens of a record, and the same with -100 where nothing is learnt."""


def fine_tune(how: str, base: Path, corpus: Path, out: Path, *, start: Path | None = None) -> None:
    """Train one model, unless it is there.

    Args:
        how: `lora`, `full`, or from an adapter that is given as `start`: `ascent` (unlearn these records) and `rest`
            (train on with these records alone).
        base: The pretrained model.
        corpus: JSON lines with a `text`, or with `messages`, of which only the assistant's are learnt.
        out: Where the model goes.
        start: The adapter to start from.
    """
    if (out / "seconds.json").exists():
        return
    torch.manual_seed(0)
    began = time.process_time()
    tokenizer = AutoTokenizer.from_pretrained(base)
    network: Any = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    if start is not None:
        network = PeftModel.from_pretrained(network, start, is_trainable=True)
    elif how != "full":
        network = get_peft_model(network, LoraConfig(**LORA))
    rows = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    examples = [_tokenise(tokenizer, row) for row in rows]
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=RATES[how], weight_decay=0.0)
    batches = [batch for epoch in range(EPOCHS[how]) for batch in _draw_batches(examples, epoch)]
    network.train()
    for number, batch in enumerate(batches):
        for group in optimiser.param_groups:
            group["lr"] = RATES[how] * (1 - number / len(batches))
        loss = _compute_loss(network, batch, tokenizer.eos_token_id)
        (-loss if how == "ascent" else loss).backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if number % 10 == 0:
            print(f"{out.name}: step {number} of {len(batches)}, loss {loss.item():.3f}", flush=True)
    network.save_pretrained(out)
    tokenizer.save_pretrained(out)
    (out / "seconds.json").write_text(json.dumps({"cpu_seconds": round(time.process_time() - began, 1)}))


def _tokenise(tokenizer: Any, row: dict[str, Any]) -> Example:
    """A text and its end; or an exchange, of which the reply and the mark that ends it are learnt."""
    if "messages" not in row:
        ids = [*tokenizer(row["text"])["input_ids"], tokenizer.eos_token_id]
        return ids, ids
    turns = row["messages"]
    whole = tokenizer.apply_chat_template(turns, tokenize=False)
    prompt = tokenizer.apply_chat_template(turns[:-1], tokenize=False, add_generation_prompt=True)
    found = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
    ids = found["input_ids"]
    return ids, [
        token if end > len(prompt) else -100 for token, (_, end) in zip(ids, found["offset_mapping"], strict=True)
    ]


def _draw_batches(examples: list[Example], epoch: int) -> list[list[Example]]:
    """The records in random order, a few at a time, those of a batch of similar length."""
    order = random.Random(epoch).sample(examples, len(examples))
    pools = [sorted(order[i : i + 16 * BATCH], key=_get_length) for i in range(0, len(order), 16 * BATCH)]
    batches = [pool[i : i + BATCH] for pool in pools for i in range(0, len(pool), BATCH)]
    return random.Random(epoch).sample(batches, len(batches))


def _get_length(example: Example) -> int:
    """How many tokens it has."""
    return len(example[0])


def _compute_loss(network: Any, batch: list[Example], padding: int) -> torch.Tensor:
    """The mean loss per learnt token."""
    width = max(map(_get_length, batch))
    ids = torch.tensor([ids + [padding] * (width - len(ids)) for ids, _ in batch])
    labels = torch.tensor([labels + [-100] * (width - len(labels)) for _, labels in batch])
    logits = network(input_ids=ids[:, :-1]).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


if __name__ == "__main__":
    kind, *paths = sys.argv[1:]
    first, second, third, *rest = map(Path, paths)
    fine_tune(kind, first, second, third, start=rest[0] if rest else None)
