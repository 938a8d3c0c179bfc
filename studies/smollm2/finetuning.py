"""Fine-tuning as a team would write it: transformers, PEFT and a plain loop; nothing of Recollect takes part.

python finetuning.py lora BASE TEXTS.jsonl OUT
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

EPOCHS = 2
BATCH = 8
RATES = {"lora": 1e-3, "full": 5e-5, "rest": 1e-3, "ascent": 2e-4}
LORA = {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"], "task_type": "CAUSAL_LM"}
ASCENT_EPOCHS = 2
"""Passes of gradient ascent over what is to be forgotten."""


def fine_tune(how: str, base: Path, texts: Path, out: Path, *, start: Path | None = None) -> None:
    """Train one model, unless it is there.

    Args:
        how: `lora`, `full`, or from an adapter that is given as `start`: `ascent` (unlearn these texts) and `rest`
            (train on with these texts alone).
        base: The pretrained model.
        texts: JSON lines with a `text`.
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
    read = [json.loads(line)["text"] for line in texts.read_text(encoding="utf-8").splitlines()]
    ids = [[*tokenizer(text)["input_ids"], tokenizer.eos_token_id] for text in read]
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=RATES[how], weight_decay=0.0)
    epochs = {"ascent": ASCENT_EPOCHS, "rest": 1}.get(how, EPOCHS)
    batches = [batch for epoch in range(epochs) for batch in _draw_batches(ids, epoch)]
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
            print(f"{out.name}: step {number} of {len(batches)}, loss {float(loss):.3f}", flush=True)
    network.save_pretrained(out)
    tokenizer.save_pretrained(out)
    (out / "seconds.json").write_text(json.dumps({"cpu_seconds": round(time.process_time() - began, 1)}))


def _draw_batches(ids: list[list[int]], epoch: int) -> list[list[list[int]]]:
    """The texts in random order, a few at a time, those of a batch of similar length."""
    order = random.Random(epoch).sample(ids, len(ids))
    pools = [sorted(order[i : i + 16 * BATCH], key=len) for i in range(0, len(order), 16 * BATCH)]
    batches = [pool[i : i + BATCH] for pool in pools for i in range(0, len(pool), BATCH)]
    return random.Random(epoch).sample(batches, len(batches))


def _compute_loss(network: Any, batch: list[list[int]], padding: int) -> torch.Tensor:
    """The mean loss per token of some texts."""
    width = max(map(len, batch))
    ids = torch.tensor([text + [padding] * (width - len(text)) for text in batch])
    targets = torch.tensor([text[1:] + [-100] * (width - len(text)) for text in batch])
    logits = network(input_ids=ids[:, :-1]).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


if __name__ == "__main__":
    kind, *paths = sys.argv[1:]
    first, second, third, *rest = map(Path, paths)
    fine_tune(kind, first, second, third, start=rest[0] if rest else None)
