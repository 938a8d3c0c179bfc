"""Part (a) of `scoring.py`: four numbers per token beside the bare forward pass that gives full logits.

Both read the very same batches, in turn, so that a busy machine slows both. The bare pass does nothing with its logits.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from _gpt2 import gpt2_small, ragged_texts, seconds

from recollect.models.answer_store.shards import write_shard
from recollect.models.hugging_face.autoregression import AutoregressivePass, AutoregressiveScorer
from recollect.models.hugging_face.batches import pad_batch, plan_batches
from recollect.models.hugging_face.causal import Causal
from recollect.models.model import Question

LEAST = 0.9


def measure(*, texts: int, rounds: int) -> dict[str, float]:
    """Tokens per second of both, the median of their ratios, and what tokenising and writing cost beside it."""
    pretrained = gpt2_small()
    records = ragged_texts(pretrained, texts)
    ids = [np.array(each) for each in pretrained.tokenizer([record.text for record in records])["input_ids"]]
    passes = [AutoregressivePass(input_ids=each[:-1], target_ids=each[1:]) for each in ids]
    reader = AutoregressiveScorer(pretrained.network, Question(), name=pretrained.name, padding=0)
    alike = [
        [passes[i] for i in batch]
        for batch in plan_batches([len(each.input_ids) for each in passes], reader.budget.tokens)
    ]
    tokens = sum(len(each.input_ids) for each in passes)
    ours, bare = np.zeros(rounds), np.zeros(rounds)
    _both(pretrained.network, reader, alike[-1], True)
    for turn in range(rounds):
        for number, batch in enumerate(alike):
            spent = _both(pretrained.network, reader, batch, (turn + number) % 2 == 0)
            ours[turn], bare[turn] = ours[turn] + spent[0], bare[turn] + spent[1]
    ratios = bare / ours
    return {
        "threads": torch.get_num_threads(),
        "budget": reader.budget.tokens,
        "tokens": tokens,
        "tokens_per_second": tokens / float(np.median(ours)),
        "bare_tokens_per_second": tokens / float(np.median(bare)),
        "ratio": float(np.median(ratios)),
        "lowest_ratio": float(ratios.min()),
        "highest_ratio": float(ratios.max()),
        **_beside(pretrained, records, float(np.median(ours))),
    }


def _both(
    network: torch.nn.Module, reader: AutoregressiveScorer, batch: list[AutoregressivePass], first: bool
) -> tuple[float, float]:
    """Seconds that ours and the bare pass take for one batch, in this order or the other."""
    if first:
        ours = seconds(lambda: reader.score_passes(batch))
        return ours, seconds(lambda: _bare(network, batch))
    bare = seconds(lambda: _bare(network, batch))
    return seconds(lambda: reader.score_passes(batch)), bare


@torch.inference_mode()
def _bare(network: torch.nn.Module, batch: list[AutoregressivePass]) -> None:
    """The forward pass alone."""
    ids, mask = pad_batch([each.input_ids for each in batch], 0)
    _ = network(ids, attention_mask=mask).logits


def _beside(pretrained: object, records: list, scoring: float) -> dict[str, float]:
    """What tokenising and writing cost, as shares of scoring."""
    model = Causal(pretrained, Question())
    tokenising = seconds(lambda: model._encode(records))
    answers = model.answer(records)
    with tempfile.TemporaryDirectory() as folder:
        writing = seconds(lambda: write_shard(Path(folder), "0" * 32, answers))
    return {"tokenising_share": tokenising / scoring, "writing_share": writing / scoring}
