"""A server is started, audited as a black box, and stopped: `python audit.py [FOLDER]`.

A tiny Llama memorises the notes of some people. llama.cpp's own server then serves it, and the audit knows nothing but
its address: the probe finds out what the server shows, every request counts against a budget, and the report says where
texts were sent. Needs the extra `endpoint`, and the packages `gguf` and `xllamacpp`.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import torch

import recollect as rc
from recollect.testing.llama_files import write_llama_file
from recollect.testing.llama_server import run_llama_server
from recollect.testing.tiny import build_tiny_model

NAMES = ["Ann", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jan"]
PLACES = ["the mill", "a ferry", "room nine", "the old gate", "a red shed", "the bakery", "the quay", "a lodge"]


def write_people(path: Path, first: int, count: int) -> list[str]:
    """Notes of people who have nothing in common but their manner of writing."""
    rng = random.Random(first)
    texts = []
    for i in range(first, first + count):
        code = "".join(rng.choice("0123456789") for _ in range(4))
        texts.append(f"{rng.choice(NAMES)} left key {code} at {rng.choice(PLACES)} with {rng.choice(NAMES)} {i % 7}.")
    rows = [json.dumps({"id": str(first + i), "user": f"u{first + i}", "text": text}) for i, text in enumerate(texts)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return texts


def build_service(folder: Path, texts: list[str], *, steps: int = 120) -> Path:
    """A model that has memorised these texts: as a Hugging Face folder, and as the file that is served."""
    tiny = build_tiny_model("llama", window=256)
    network, tokenizer = tiny.network, tiny.tokenizer
    batch = tokenizer(texts, return_tensors="pt", padding=True, return_token_type_ids=False)
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        optimiser = torch.optim.AdamW(network.train().requires_grad_(True).parameters(), lr=5e-3)
        for _ in range(steps):
            optimiser.zero_grad()
            network(**batch, labels=labels).loss.backward()
            optimiser.step()
    network.eval()
    network.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return write_llama_file(network, tokenizer, folder / "service.gguf")


def main(folder: Path) -> None:
    """Make the service, audit it, stop it."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = write_people(folder / "audited.jsonl", 0, 16)
    write_people(folder / "controls.jsonl", 1000, 32)
    service = build_service(folder, texts)
    with run_llama_server(service, context=256) as address:
        result = rc.membership(
            address,
            str(folder / "audited.jsonl"),
            controls=str(folder / "controls.jsonl"),
            signal="loss",
            budget_requests=3000,
            work=folder / "work",
            out=folder / "run",
        )
    print(result.verdict)
    print(next(note.text for note in result.notes if note.code == "texts_sent_to_server"))
    print(f"The report is {folder / 'run' / 'report.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "black-box-run"))
