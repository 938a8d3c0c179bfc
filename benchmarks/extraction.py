"""Walking a format against the bare batched step: the same LSTM, the same number of nodes at once, in turns.

The bare step reads one symbol in each of 1,024 states and makes log-probabilities; ours also keeps the tree, its states
and costs, cuts what is too expensive, and gathers the children. Processor time of one thread is compared. The claim: at
least 0.8 of the bare step's speed. With a model and a format, exact rank and proven extraction are timed as well:

    python benchmarks/extraction.py MODEL 'the random number is {digits:9}' 'the random number is 281265017'
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import torch

from recollect.audits.exposure.prefix_tree import PrefixTree
from recollect.audits.exposure.rank_counting import BATCH, count_rank
from recollect.audits.exposure.search import search_shortest_paths
from recollect.corpora.canaries.formats import parse_format
from recollect.models.architectures import RecurrentConfig, RecurrentLM
from recollect.models.hugging_face.causal import Causal
from recollect.models.loading.loader import load_model
from recollect.models.loading.pretrained import Pretrained
from recollect.models.model import Question
from recollect.recipes.data.tokenizers import train_character_tokenizer

ROUNDS, STEPS, CLAIM = 7, 12_000, 0.8
FORMAT = "the random number is {digits:9}"


def made() -> Causal:
    """The paper's character model, with random weights."""
    tokenizer = train_character_tokenizer(["abcdefghijklmnopqrstuvwxyz .,'<>0123456789-&$#"])
    torch.manual_seed(0)
    symbols = {"vocab_size": len(tokenizer), "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    network = RecurrentLM(RecurrentConfig(units=200, layers=2, embedding=149, **symbols)).eval().requires_grad_(False)
    return Causal(Pretrained(name="lstm", network=network, tokenizer=tokenizer, digest="0", card={}), Question())


def ours(model: Causal) -> float:
    """Seconds per node of an exact count that never ends."""
    tree = PrefixTree(model.stepper(), parse_format(FORMAT))
    began = time.process_time()
    found = count_rank(tree, 1e9, max_steps=STEPS)
    return (time.process_time() - began) / found.steps


@torch.inference_mode()
def bare(model: Any) -> float:
    """Seconds per node of the bare step."""
    network = model._network
    ids = torch.randint(4, 40, (BATCH, 1))
    state = network(input_ids=ids, use_cache=True).past_key_values
    batches = STEPS // BATCH
    began = time.process_time()
    for _ in range(batches):
        output = network(input_ids=ids, past_key_values=state, use_cache=True)
        state = output.past_key_values
        torch.log_softmax(output.logits[:, -1], dim=1)
    return (time.process_time() - began) / (batches * BATCH)


def memorised(ref: str, written: str, text: str) -> None:
    """What a memorised secret costs."""
    model = load_model(ref)
    tree = PrefixTree(model.stepper(), parse_format(written))  # type: ignore[attr-defined]
    began = time.monotonic()
    rank = count_rank(tree, tree.score(text).cost, max_steps=100_000)
    print(
        f"exact rank {rank.low:,} to {rank.high:,} of {tree.size:,}: {rank.steps:,} steps, "
        f"{time.monotonic() - began:.1f} s"
    )
    began = time.monotonic()
    found = search_shortest_paths(PrefixTree(model.stepper(), parse_format(written)), 1, max_steps=100_000)  # type: ignore[attr-defined]
    right = bool(found.secrets) and found.secrets[0].text == text
    print(
        f"shortest path: {'the secret' if right else 'something else'}, proven: {found.proven == 1}, "
        f"{found.steps:,} steps, {time.monotonic() - began:.1f} s"
    )


def main() -> None:
    torch.set_num_threads(1)
    model = made()
    ours(model), bare(model)
    ratios = []
    for turn in range(ROUNDS):
        first, second = (ours, bare) if turn % 2 else (bare, ours)
        times = {way.__name__: way(model) for way in (first, second)}
        ratios.append(times["bare"] / times["ours"])
    found = statistics.median(ratios)
    print(f"{found:.3f} of the bare step's speed (median of {ROUNDS}, {min(ratios):.3f} to {max(ratios):.3f})")
    if len(sys.argv) == 4:
        memorised(*sys.argv[1:])
    assert found >= CLAIM, f"{found:.3f} is below {CLAIM}"


if __name__ == "__main__":
    main()
