"""The chat half of the study: SmolLM2-135M tuned on conversations by plain PyTorch and PEFT.

    python chats.py prepare DATA FOLDER [small]    who is in it, and the planted secrets
    python chats.py train BASE FOLDER target       one model: target, or retrained (without the removed users)

Each line can be run again: what is there stays. Conversations are single exchanges of the BYU Chit-Chat corpus; the
user of a record is who answers. Training is as a team would write it, and takes no part of Recollect.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SIZES = {"full": (40, 40, 80, 8), "small": (14, 14, 40, 5)}
"""How many users train the target, are audited likewise and never trained on, are controls, and are removed."""
REPEAT = {"full": (1, 4, 16), "small": (1, 8)}
"""How often secrets are planted."""
CHATS = 4
"""Exchanges of each user."""
WORDS = (6, 25)
"""Words of a reply, and at the most of what it replies to."""
EPOCHS, BATCH, RATE = 3, 6, 1e-3
LORA = {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"], "task_type": "CAUSAL_LM"}
FORMAT = "my door code is {digits:6}"


def prepare(data: Path, folder: Path, size: str = "full") -> None:
    """Write the corpora of the study."""
    from recollect.corpora.canaries.insertion import CanarySettings, plant
    from recollect.corpora.corpus import Corpus
    from recollect.corpora.corpus_writer import write_corpus
    from recollect.corpora.messages import say
    from recollect.corpora.record import Record

    folder.mkdir(parents=True, exist_ok=True)
    users: dict[str, list[Record]] = {}
    for number, row in enumerate(_read_turns(data / "chitchat" / "turns.jsonl.gz")):
        theirs = users.setdefault(row["user"], [])
        if len(theirs) < CHATS:
            turns = say("user", row["source"]), say("assistant", row["target"])
            theirs.append(Record(id=f"chat-{number}", user=row["user"], messages=turns))
    whole = sorted(user for user, records in users.items() if len(records) == CHATS)
    members, held_out, controls, few = SIZES[size]
    chosen = random.Random(0).sample(whole, members + held_out + controls)
    rest = chosen[members:]
    roles = {"members": chosen[:members], "held-out": rest[:held_out], "controls": rest[held_out:]}
    corpora = {role: [record for user in names for record in users[user]] for role, names in roles.items()}
    planted, secrets = plant(
        Corpus.of(corpora["members"]), CanarySettings(format=FORMAT, secrets=2, repeat=REPEAT[size], controls=60)
    )
    removed = frozenset(roles["members"][:few])
    corpora["training"] = list(planted)
    corpora["kept"] = [record for record in planted if record.user not in removed]
    corpora["removed"] = [record for record in corpora["members"] if record.user in removed]
    corpora["audited"] = [*corpora["members"], *corpora["held-out"]]
    for role, records in corpora.items():
        write_corpus(records, folder / f"{role}.jsonl")
    secrets.save(folder / "training.canaries.json")
    (folder / "members.txt").write_text("\n".join(roles["members"]) + "\n")
    (folder / "held-out.txt").write_text("\n".join(roles["held-out"]) + "\n")


def _read_turns(path: Path) -> Iterator[dict[str, str]]:
    """Exchanges of the wanted length."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            sizes = len(row["source"].split()), len(row["target"].split())
            if 2 <= sizes[0] <= WORDS[1] and WORDS[0] <= sizes[1] <= WORDS[1]:
                yield row


def train(base: Path, folder: Path, name: str) -> None:
    """A LoRA model by a plain loop: the loss is on what the assistant says, and on the mark that ends it."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    out = folder / "models" / name
    if (out / "seconds.json").exists():
        return
    torch.manual_seed(0)
    began = time.process_time()
    tokenizer = AutoTokenizer.from_pretrained(base)
    network: Any = get_peft_model(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), LoraConfig(**LORA))
    source = folder / {"target": "training.jsonl", "retrained": "kept.jsonl"}[name]
    rows = [json.loads(line)["messages"] for line in source.read_text(encoding="utf-8").splitlines()]
    examples = [_tokenise(tokenizer, turns) for turns in rows]
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.0)
    batches = [batch for epoch in range(EPOCHS) for batch in _draw_batches(examples, epoch)]
    network.train()
    for number, batch in enumerate(batches):
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 - number / len(batches))
        loss = _compute_loss(network, batch, tokenizer.pad_token_id or 0)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if number % 10 == 0:
            print(f"{name}: step {number} of {len(batches)}, loss {float(loss):.3f}", flush=True)
    network.save_pretrained(out)
    tokenizer.save_pretrained(out)
    (out / "seconds.json").write_text(json.dumps({"cpu_seconds": round(time.process_time() - began, 1)}))


def _tokenise(tokenizer: Any, turns: list[dict[str, str]]) -> tuple[list[int], list[int]]:
    """The tokens of an exchange, and the same with -100 where nothing is learnt."""
    whole = tokenizer.apply_chat_template(turns, tokenize=False)
    prompt = tokenizer.apply_chat_template(turns[:-1], tokenize=False, add_generation_prompt=True)
    found = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
    ids = found["input_ids"]
    return ids, [
        token if end > len(prompt) else -100 for token, (_, end) in zip(ids, found["offset_mapping"], strict=True)
    ]


def _draw_batches(examples: list[Any], epoch: int) -> list[list[Any]]:
    """The exchanges in random order, a few at a time, those of a batch of similar length."""
    order = random.Random(epoch).sample(examples, len(examples))
    pools = [sorted(order[i : i + 16 * BATCH], key=lambda each: len(each[0])) for i in range(0, len(order), 16 * BATCH)]
    batches = [pool[i : i + BATCH] for pool in pools for i in range(0, len(pool), BATCH)]
    return random.Random(epoch).sample(batches, len(batches))


def _compute_loss(network: Any, batch: list[Any], padding: int) -> Any:
    """The mean loss per learnt token."""
    import torch

    width = max(len(ids) for ids, _ in batch)
    ids = torch.tensor([ids + [padding] * (width - len(ids)) for ids, _ in batch])
    labels = torch.tensor([labels + [-100] * (width - len(labels)) for _, labels in batch])
    logits = network(input_ids=ids[:, :-1]).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    if verb == "prepare":
        prepare(Path(rest[0]), Path(rest[1]), *rest[2:])
    elif verb == "train":
        train(Path(rest[0]), Path(rest[1]), rest[2])
