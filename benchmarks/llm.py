"""A real pretrained model: `python benchmarks/llm.py --model FOLDER [--parts stm] [--threads 1 2]`.

(s) scoring, beside the bare forward pass, and beside the forward pass with log-softmax of every logit; (t) LoRA
training beside a plain PEFT loop; (m) memory beyond the weights, and of four adapters beside one. Turns are interleaved
and processor time is measured, so that a busy machine slows all alike. Without `--model` nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "llm.json"
LENGTHS = (16, 64, 128, 512)
LEAST_OF_SOFTMAX, LEAST_OF_BARE, LEAST_OF_PEFT, MOST_OF_ONE = 0.95, 0.88, 0.95, 1.1
ROUNDS = 7


def main() -> int:
    asked = arguments()
    if asked.model is None:
        print("give --model FOLDER: a pretrained causal model; nothing was measured")
        return 0
    found: dict[str, Any] = {}
    if "s" in asked.parts:
        found["scoring"] = [
            score(asked.model, threads, length, rounds=asked.rounds, tokens=asked.tokens)
            for threads in asked.threads
            for length in asked.lengths
        ]
    if "t" in asked.parts:
        found["training"] = train(asked.model, rounds=asked.rounds)
    if "m" in asked.parts:
        found["memory"] = measure_memory(asked.model)
    print(json.dumps(found, indent=2))
    from recollect.files import write_json

    write_json(asked.out, found)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="the folder of a pretrained causal model")
    parser.add_argument("--parts", default="stm", help="which of s, t and m")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--lengths", type=int, nargs="*", default=list(LENGTHS), help="tokens of a text")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--tokens", type=int, default=512, help="tokens of one turn")
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args()


def score(folder: Path, threads: int, length: int, *, rounds: int, tokens: int) -> dict[str, float]:
    """All numbers of each token, beside what the forward pass alone costs."""
    import torch

    from recollect.corpora.record import Record
    from recollect.models.hugging_face.causal import Causal
    from recollect.models.loading.loader import load_model

    torch.set_num_threads(threads)
    model = load_model(str(folder))
    assert isinstance(model, Causal)
    table = draw_words(model.tokenizer, max(1, tokens // length), length)
    texts = [model.tokenizer.decode(row) for row in table]
    records = [Record(id=str(i), text=text) for i, text in enumerate(texts)]
    # all sides read the same tokens: none is padded, none is cut, and the last one, which predicts nothing, is not read
    assert all([*model._encode_text([text])[0].ids] == row.tolist() for text, row in zip(texts, table, strict=True))
    network = model._network

    @torch.inference_mode()
    def bare() -> None:
        network(input_ids=table[:, :-1], use_cache=False)

    @torch.inference_mode()
    def softmax() -> None:
        logits = network(input_ids=table[:, :-1], use_cache=False).logits
        logits.log_softmax(-1).gather(-1, table[:, 1:, None])

    ways: dict[str, Callable[[], Any]] = {"bare": bare, "softmax": softmax, "ours": lambda: model.answer(records)}
    spent = take_turns(ways, rounds)
    ours = spent["ours"]
    return {
        "threads": threads,
        "length": length,
        "tokens_per_cpu_second": table.numel() / ours,
        "of_softmax": spent["softmax"] / ours,
        "of_bare": spent["bare"] / ours,
    }


def draw_words(tokenizer: Any, texts: int, length: int) -> Any:
    """Tokens of texts of equal length: whole words, which are the same tokens when the text is tokenised again."""
    import torch

    words = [i for i in range(100, 10_000) if re.fullmatch(" [a-z]+", tokenizer.decode([i]))]
    drawn = torch.randint(len(words), (texts, length), generator=torch.Generator().manual_seed(0))
    return torch.tensor(words)[drawn]


def take_turns(ways: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The median processor time of each way; they are measured in turn, after one that does not count."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, run in ways.items():
            began = time.process_time()
            run()
            if number:
                spent[name].append(time.process_time() - began)
    return {name: statistics.median(times) for name, times in spent.items()}


def train(folder: Path, *, rounds: int) -> dict[str, float]:
    """Steps of the recipe `lora`, beside those of a plain loop on the same batch."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    from recollect.corpora.corpus import Corpus
    from recollect.corpora.record import Record
    from recollect.recipes.recipe_file import load_recipe
    from recollect.recipes.training.assembly import assemble_training
    from recollect.recipes.training.job import Job
    from recollect.recipes.training.update import TrainingStep
    from recollect.streams import stream

    torch.set_num_threads(1)
    corpus = Corpus.of(Record(id=str(i), text=f"text number {i} " + "and so on " * 12) for i in range(8))
    recipe = load_recipe("lora", {"model.start": str(folder)})
    loop = assemble_training(Job.of(recipe, corpus, None, seed=0), None).loop
    (batch,) = loop.sampler.iter_batches(0)
    loop.model.train()
    plain = get_peft_model(
        AutoModelForCausalLM.from_pretrained(folder), LoraConfig(r=8, lora_alpha=16, task_type="CAUSAL_LM")
    ).train()
    optimiser = torch.optim.AdamW([each for each in plain.parameters() if each.requires_grad], lr=5e-4)
    inputs = loop.update.sequences.build_batch(batch, lambda *labels: stream(0, *labels))  # type: ignore[attr-defined]

    def step() -> None:
        logits = plain(**inputs.inputs).logits
        torch.nn.functional.cross_entropy(logits.flatten(0, -2), inputs.targets.flatten(), ignore_index=-100).backward()
        torch.nn.utils.clip_grad_norm_([each for each in plain.parameters() if each.requires_grad], 1.0)
        optimiser.step()
        optimiser.zero_grad()

    mine = TrainingStep(number=0, starts_epoch=True, indices=batch, rate=5e-4)
    spent = take_turns({"plain": step, "ours": lambda: loop.update.step(mine)}, rounds)
    return {"of_plain_peft": spent["plain"] / spent["ours"], "must": LEAST_OF_PEFT}


MEMORY = """
import re, sys
import torch
torch.set_num_threads(1)
from pathlib import Path
from recollect.corpora.record import Record
from recollect.models.loading.loader import load_model
def now(name):
    return int(re.search(rf"{name}:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024
before = now("VmRSS")
models = [load_model(each) for each in sys.argv[2:]]
loaded = now("VmRSS")
for model in models:
    model.answer([Record(id="a", text="word " * int(sys.argv[1]))])
print(loaded - before, now("VmHWM") - loaded)
"""


def measure_memory(folder: Path) -> dict[str, float]:
    """Megabytes beyond the weights while a text is scored, and of four adapters beside one."""
    with tempfile.TemporaryDirectory() as work:
        adapters = [str(write_adapter(folder, Path(work) / str(i), seed=i)) for i in range(4)]
        _, beyond = run_memory(512, str(folder))
        one, four = (run_memory(16, *adapters[:count])[0] for count in (1, 4))
    return {"beyond_the_weights_mb": beyond, "one_adapter_mb": one, "four_of_one": four / one, "most": MOST_OF_ONE}


def write_adapter(folder: Path, out: Path, *, seed: int) -> Path:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    config = LoraConfig(r=8, task_type="CAUSAL_LM", init_lora_weights=False)
    get_peft_model(AutoModelForCausalLM.from_pretrained(folder), config).save_pretrained(out)
    return out


def run_memory(words: int, *models: str) -> tuple[float, float]:
    command = [sys.executable, "-c", MEMORY, str(words), *models]
    said = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own script
    loaded, beyond = said.stdout.strip().splitlines()[-1].split()
    return float(loaded), float(beyond)


if __name__ == "__main__":
    sys.exit(main())
