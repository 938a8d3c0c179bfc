"""A model behind a server beside the same weights on this machine, token by token.

    python studies/servers/compare.py http://localhost:8000/v1#NAME FOLDER TEXTS.jsonl [--top 20] [--float64]

FOLDER holds the weights and the tokenizer. Where two sides give a token another rank, the true token's nearest
competitors decide whether rounding explains it: every rank between the number of logits that are larger by more than a
tolerance and the number of those that are smaller by less is one that rounding may give. With --float64 the same
weights are also computed in double precision, whose logits then decide, and it is counted which side has its ranks.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from recollect.corpora.record import Record
from recollect.models.answers import Answers
from recollect.models.endpoint.settings import EndpointSettings
from recollect.models.loading.loader import load_model
from recollect.models.model import Question


def compare(url: str, folder: Path, texts: list[str], *, top: int = 20, float64: bool = False) -> dict[str, Any]:
    """How log-probabilities and ranks of a server differ from those of the same weights here.

    Args:
        url: The server and the name of the model.
        folder: The same model as a Hugging Face folder.
        texts: What is scored.
        top: Ranked tokens that the server is asked for.
        float64: Whether to compute the same in double precision, too.
    """
    records = [Record(id=str(i), text=text) for i, text in enumerate(dict.fromkeys(texts))]
    with tempfile.TemporaryDirectory() as work:
        settings = EndpointSettings(work=Path(work), tokenizer=str(folder), top_logprobs=top)
        served_model = load_model(url, endpoint=settings)
        served, local = served_model.answer(records), load_model(str(folder)).answer(records)
    gaps = np.abs(served.logprob - local.logprob)
    limit = served_model.access.k
    ranks = local.rank if limit is None else np.where(local.rank > limit, 0, local.rank)
    unequal = np.flatnonzero(served.rank != ranks)
    found = {
        "server": served_model.endpoint.server,
        "access": {"k": limit, "logprob": served_model.access.logprob},
        "noise_floor": served_model.endpoint.noise_floor,
        "requests": served_model.spent.requests,
        "tokens": int(gaps.size),
        "logprob_difference": {
            "median": float(np.median(gaps)),
            "p99": float(np.quantile(gaps, 0.99)),
            "largest": float(gaps.max()),
        },
        "unequal_ranks": len(unequal),
        "top_1_equal": float(np.mean((served.rank == 1) == (local.rank == 1))),
        "top_10_equal": float(np.mean(_is_within(served.rank, 10) == _is_within(local.rank, 10))),
    }
    if float64 and limit is None:
        exact = load_model(str(folder), question=Question(precision="float64")).answer(records)
        sides = {"served": served.rank, "local": local.rank, "float64": exact.rank}
        found["unlike_float64"] = {side: int((rank != exact.rank).sum()) for side, rank in sides.items()}
        found["logprob_difference_from_float64"] = {
            side: float(np.abs(answers.logprob - exact.logprob).max())
            for side, answers in (("served", served), ("local", local))
        }
        unequal = np.flatnonzero((served.rank != exact.rank) | (local.rank != exact.rank))
    else:
        sides = {"served": served.rank, "local": local.rank}
    if limit is None and len(unequal):
        found["unequal"] = _explain(folder, records, local, sides, unequal.tolist())
    return found


def _is_within(rank: Any, k: int) -> Any:
    """Which tokens are among the top k."""
    return (rank >= 1) & (rank <= k)


def _explain(
    folder: Path, records: list[Record], answers: Answers, sides: dict[str, Any], places: list[int]
) -> list[dict[str, Any]]:
    """Each unequal rank with the smallest tolerance, in nats, that explains the ranks of all sides by rounding."""
    dtype = torch.float64 if "float64" in sides else torch.float32
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    found = []
    for place in places:
        number = int(np.searchsorted(answers.offsets, place, side="right")) - 1
        text = records[number].text
        ids, plain = tokenizer(text)["input_ids"], tokenizer(text, add_special_tokens=False)["input_ids"]
        at = int(answers.position[place]) + len(ids) - len(plain)
        with torch.inference_mode():
            logits = network(torch.tensor([ids[:at]])).logits[0, -1].double().numpy()
        ranks = {side: int(rank[place]) for side, rank in sides.items()}
        tolerance = _find_tolerance(logits - logits[ids[at]], tuple(ranks.values()))
        found.append({**ranks, "tolerance": tolerance})
    return found


def _find_tolerance(distance: Any, ranks: tuple[int, ...]) -> float:
    """The smallest tolerance that explains all of these ranks."""
    for tolerance in np.sort(np.abs(distance)):
        low = int((distance > tolerance).sum()) + 1
        high = int((distance >= -tolerance).sum())
        if low <= min(ranks) and max(ranks) <= high:
            return float(tolerance)
    return float("inf")


def main() -> None:
    """Print the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("folder", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--float64", action="store_true")
    given = parser.parse_args()
    texts = [json.loads(line)["text"] for line in given.texts.read_text(encoding="utf-8").splitlines()]
    print(json.dumps(compare(given.url, given.folder, texts, top=given.top, float64=given.float64), indent=1))


if __name__ == "__main__":
    main()
