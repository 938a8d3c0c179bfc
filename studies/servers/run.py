"""Audits of a real model behind llama.cpp's own server, beside the same audits of the same weights on this machine.

    python studies/servers/run.py --base SMOLLM2 --data DATA --work WORK [--port 8089] [STEP …]

SMOLLM2 holds `model.gguf` (Q4_1) and `hf/` (the same weights for transformers). Steps: scores, finetune, extract,
audits, ranks; all by default. What they measure goes into results.json beside this file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import recollect as rc
from recollect.digests import digest
from recollect.models.endpoint.ledger import Ledger
from recollect.testing.llama_files import write_llama_file
from recollect.testing.llama_server import run_llama_server

sys.path.insert(0, str(Path(__file__).parent))
from compare import compare

RESULTS = Path(__file__).with_name("results.json")
MEMBERS, HELD_OUT, CONTROLS = 12, 12, 280
"""People whose comments train the model, people who are audited beside them and in no training set, and controls."""
COMMENTS = 3
WORDS = (10, 16)
PREFIX = "my door code is "
CODES = ("4821", "0937", "7350")
PLANTED = 8
"""How often each code is in the training set."""
EPOCHS, RATE, BATCH = 4, 1e-3, 8
STEPS = ("scores", "finetune", "extract", "audits", "ranks")
AUDITS: dict[str, dict[str, Any]] = {
    "membership": {"by": "user", "signal": "loss"},
    "leakage": {"top_k": 3},
    "provenance": {"top_k": 10, "recipe": "word-lstm", "shadows": 4},
}

PEOPLE: dict[str, tuple[str, Callable[[dict[str, Any]], bool]]] = {
    "membership": ("candidates", lambda row: bool(row["identified"])),
    "leakage": ("users", lambda row: bool(row["flagged"])),
    "provenance": ("users", lambda row: row["decision"] == "member"),
}
"""The table of each audit that has a row for each person, and whether that person is found."""


def read_people(data: Path) -> Iterator[list[str]]:
    """The first comments of each Reddit user that are neither short nor long."""
    people: dict[str, list[str]] = {}
    with gzip.open(data / "reddit_comments" / "comments.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            text = " ".join(row["text"].split())
            if WORDS[0] <= len(text.split()) <= WORDS[1] and "http" not in text:
                people.setdefault(row["user"], []).append(text)
    yield from (texts[:COMMENTS] for texts in people.values() if len(texts) >= COMMENTS)


def write_corpora(data: Path, work: Path) -> None:
    """The audited people, controls and the training set as files."""
    people = read_people(data)
    chosen = [next(people) for _ in range(MEMBERS + HELD_OUT + CONTROLS)]
    rows = [
        {"id": f"{i}-{j}", "user": f"u{i}", "text": text} for i, own in enumerate(chosen) for j, text in enumerate(own)
    ]
    members, audited = rows[: MEMBERS * COMMENTS], rows[: (MEMBERS + HELD_OUT) * COMMENTS]
    planted = [{"id": f"s{i}", "user": "vault", "text": f"{PREFIX}{code}"} for i, code in enumerate(CODES * PLANTED)]
    roles = {"audited": audited, "controls": rows[len(audited) :], "training": members + planted}
    for role, own in roles.items():
        lines = [json.dumps(row) for row in own]
        (work / f"{role}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_texts(path: Path) -> list[str]:
    """The texts of a corpus."""
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]


def fine_tune(base: Path, work: Path) -> dict[str, Any]:
    """A LoRA adapter on the training set, merged into the base: as a folder, and as an F16 file."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(0)
    began = time.process_time()
    tokenizer = AutoTokenizer.from_pretrained(base / "hf")
    modules = ["q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    config = LoraConfig(r=16, lora_alpha=32, target_modules=modules, task_type="CAUSAL_LM")
    network: Any = get_peft_model(AutoModelForCausalLM.from_pretrained(base / "hf"), config).train()
    texts = sorted(read_texts(work / "training.jsonl"), key=len)
    batches = [tokenizer(texts[i : i + BATCH], return_tensors="pt", padding=True) for i in range(0, len(texts), BATCH)]
    optimiser = torch.optim.AdamW((p for p in network.parameters() if p.requires_grad), lr=RATE)
    loss = torch.tensor(0.0)
    for epoch in range(EPOCHS):
        for batch in batches:
            labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
            loss = network(**batch, labels=labels).loss
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
        print(f"epoch {epoch}: loss {loss.item():.3f}", flush=True)
    merged = network.merge_and_unload().eval()
    merged.save_pretrained(work / "tuned")
    tokenizer.save_pretrained(work / "tuned")
    write_llama_file(merged, base / "model.gguf", work / "tuned.gguf", precision="F16")
    return {"last_loss": loss.item(), "cpu_seconds": round(time.process_time() - began)}


def describe(name: str, report: Any) -> dict[str, Any]:
    """What is compared of a result: also whom it finds, with the truth beside it."""
    table, found = PEOPLE[name]
    people = {row["user" if table == "users" else "record"]: found(row) for row in report.table(table).to_pylist()}
    members = {f"u{i}" for i in range(MEMBERS)}
    return {
        "outcome": report.outcome,
        "verdict": report.verdict,
        "found_members": sorted(user for user, is_found in people.items() if is_found and user in members),
        "found_held_out": sorted(user for user, is_found in people.items() if is_found and user not in members),
        "people": len(people),
        "findings": {finding.name: finding.value for finding in report.findings},
        "notes": [note.code for note in report.notes],
    }


def audit(name: str, address: str, work: Path) -> dict[str, Any]:
    """One audit of the server and of the folder."""
    found = {}
    for side, model in (("local", str(work / "tuned")), ("served", address)):
        began = time.monotonic()
        given = {"controls": str(work / "controls.jsonl"), "work": work / "recollect", **AUDITS[name]}
        found[side] = describe(name, getattr(rc, name)(model, str(work / "audited.jsonl"), **given))
        print(f"{name} {side}: {found[side]['verdict']} ({time.monotonic() - began:.0f} s)", flush=True)
    keys = ("outcome", "verdict", "found_members", "found_held_out", "findings")
    return found | {f"{key}_equal": found["local"][key] == found["served"][key] for key in keys}


def extract(address: str, work: Path) -> dict[str, Any]:
    """The planted secrets, extracted from either side."""
    found: dict[str, Any] = {"planted": [PREFIX + code for code in CODES]}
    for side, model in (("local", str(work / "tuned")), ("served", address)):
        began = time.monotonic()
        report = rc.extract(
            model,
            format=PREFIX + "{digits:4}",
            top=len(CODES),
            server_tokenizer=str(work / "tuned"),
            work=work / "recollect-extract",
            show_text=True,
        )
        rows = report.table("secrets").to_pylist()
        listed = [{key: row[key] for key in ("secret", "proven", "log_perplexity_bits")} for row in rows]
        findings = {finding.name: finding.value for finding in report.findings}
        found[side] = {"verdict": report.verdict, "findings": findings, "secrets": listed}
        print(f"extract {side}: {found[side]} ({time.monotonic() - began:.0f} s)", flush=True)
    url = address.partition("#")[0]
    ledger = Ledger.share(work / "recollect-extract" / "endpoints" / digest(url), owner=url)
    return found | {"requests": ledger.spent.requests}


def run_step(step: str, base: Path, work: Path, port: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a step measures, by name."""
    if step == "finetune":
        yield step, fine_tune(base, work)
    elif step == "scores":
        with run_llama_server(base / "model.gguf", port=port) as address:
            yield step, compare(address, base / "hf", read_texts(work / "controls.jsonl")[:30])
    else:
        with run_llama_server(work / "tuned.gguf", port=port) as address:
            if step == "ranks":
                yield step, compare(address, work / "tuned", read_texts(work / "controls.jsonl")[:4], top=49_152)
            elif step == "extract":
                yield step, extract(address, work)
            else:  # one server for all: what one audit has scored the next one finds
                yield from ((name, audit(name, address, work)) for name in AUDITS)


def main() -> None:
    """Run the steps that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--port", type=int, default=8089, help="of the server; the same one resumes")
    parser.add_argument("steps", nargs="*", default=STEPS)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    write_corpora(given.data, given.work)
    for step in given.steps:
        for name, found in run_step(step, given.base, given.work, given.port):
            results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
            RESULTS.write_text(json.dumps({**results, name: found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
