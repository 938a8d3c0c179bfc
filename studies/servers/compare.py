"""A model behind a server beside the same weights on this machine, token by token.

    python studies/servers/compare.py http://localhost:8000/v1#NAME FOLDER TEXTS.jsonl [--top 20] [--float64]

FOLDER holds the weights and the tokenizer. Where two sides give a token another rank, the true token's nearest
competitors decide whether rounding explains it: every rank between the number of logits that are larger by more than a
tolerance and the number of those that are smaller by less is one that rounding may give. With --float64 the same
weights are also computed in double precision, text by text and by transformers alone, and its logits decide: how often
each side has its rank, and how many ranks lie within the interval that a tolerance leaves.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from recollect.corpora.record import Record
from recollect.models.answers import Answers
from recollect.models.endpoint.settings import EndpointSettings
from recollect.models.loading.loader import load_model

TOLERANCE = 2.5e-5
"""How far apart, in nats, two logits of a model of this size may be for float32 to exchange them."""
NEAREST = 256
"""Competitors that are looked at: more than lie within any tolerance of interest."""


@dataclass(frozen=True)
class Competition:
    """How a token stands among its competitors, computed anew."""

    logprob: float
    larger: int
    """How many logits are larger than its own."""
    nearest: Any
    """Distances of the nearest logits from its own, the smallest first; 0 is itself."""

    @property
    def rank(self) -> int:
        """Its rank; ties count against it."""
        return self.get_interval(0.0)[1]

    def get_interval(self, tolerance: float) -> tuple[int, int]:
        """The best and the worst rank if logits closer than this may be exchanged."""
        within = self.nearest[np.abs(self.nearest) <= tolerance]
        return self.larger + 1 - int((within > 0).sum()), self.larger + int((within <= 0).sum())

    def find_tolerance(self, ranks: set[int]) -> float:
        """The smallest tolerance that explains all of these ranks."""
        for tolerance in np.abs(self.nearest).tolist():
            low, high = self.get_interval(tolerance)
            if low <= min(ranks) and max(ranks) <= high:
                return float(tolerance)
        return float("inf")


def compare(
    url: str, folder: Path, texts: list[str], *, top: int = 20, connections: int = 8, float64: bool = False
) -> dict[str, Any]:
    """How log-probabilities and ranks of a server differ from those of the same weights here.

    Args:
        url: The server and the name of the model.
        folder: The same model as a Hugging Face folder.
        texts: What is scored.
        top: Ranked tokens that the server is asked for.
        connections: Requests that are sent at once.
        float64: Whether to compute the same in double precision, too.
    """
    records = [Record(id=str(i), text=text) for i, text in enumerate(dict.fromkeys(texts))]
    with tempfile.TemporaryDirectory() as work:
        settings = EndpointSettings(work=Path(work), tokenizer=str(folder), top_logprobs=top, connections=connections)
        served_model, local_model = load_model(url, endpoint=settings), load_model(str(folder))
        served, local = served_model.answer(records), local_model.answer(records)
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
    sides = {"served": served, "local": local}
    if float64 and limit is None:
        alone = Answers.concatenate([local_model.answer([record]) for record in records])
        found |= _compare_with_float64(folder, records, {**sides, "local_one_by_one": alone})
    elif limit is None and len(unequal):
        found["unequal"] = _explain(folder, records, sides, unequal.tolist())
    return found


def _is_within(rank: Any, k: int) -> Any:
    """Which tokens are among the top k."""
    return (rank >= 1) & (rank <= k)


def _compute_competition(
    folder: Path, records: list[Record], answers: Answers, dtype: torch.dtype
) -> Iterator[Competition]:
    """How each scored token stands among its competitors, text by text."""
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for number, record in enumerate(records):
        ids = tokenizer(record.text)["input_ids"]
        extra = len(ids) - len(tokenizer(record.text, add_special_tokens=False)["input_ids"])
        with torch.inference_mode():
            logits = network(torch.tensor([ids])).logits[0].double()
        logprobs = logits.log_softmax(-1)
        for position in answers.position[answers.offsets[number] : answers.offsets[number + 1]].tolist():
            at = position + extra
            distance = logits[at - 1] - logits[at - 1, ids[at]]
            near = distance.abs().topk(min(NEAREST, len(distance)), largest=False).indices
            yield Competition(float(logprobs[at - 1, ids[at]]), int((distance > 0).sum()), distance[near].numpy())


def _explain(folder: Path, records: list[Record], sides: dict[str, Answers], places: list[int]) -> list[dict[str, Any]]:
    """Each unequal rank with the smallest tolerance, in nats, that explains the ranks of all sides by rounding."""
    every = list(_compute_competition(folder, records, sides["local"], torch.float32))
    return [_describe_place(sides, place, every[place]) for place in places]


def _describe_place(sides: dict[str, Answers], place: int, own: Competition) -> dict[str, Any]:
    """The ranks of all sides in one place, and what explains that they differ."""
    ranks = {side: int(answers.rank[place]) for side, answers in sides.items()}
    return {**ranks, "tolerance": own.find_tolerance(set(ranks.values()))}


def _compare_with_float64(folder: Path, records: list[Record], sides: dict[str, Answers]) -> dict[str, Any]:
    """How every side differs from the same weights in double precision."""
    every = list(_compute_competition(folder, records, sides["local"], torch.float64))
    rank, logprob = np.array([own.rank for own in every]), np.array([own.logprob for own in every])
    low, high = np.array([own.get_interval(TOLERANCE) for own in every]).T
    differs = np.zeros(len(every), dtype=np.bool_)
    for answers in sides.values():
        differs |= answers.rank != rank
    apart = np.flatnonzero(sides["served"].rank != sides["local"].rank)
    return {
        "unlike_float64": {side: int((answers.rank != rank).sum()) for side, answers in sides.items()},
        "logprob_difference_from_float64": {
            side: float(np.abs(answers.logprob - logprob).max()) for side, answers in sides.items()
        },
        "float64_rank_where_served_and_local_differ": {
            side: int((answers.rank == rank)[apart].sum()) for side, answers in sides.items()
        },
        "unlike_served": {side: int((answers.rank != sides["served"].rank).sum()) for side, answers in sides.items()},
        "interval": {
            "tolerance": TOLERANCE,
            "outside": {
                side: int(((r := answers.rank) < low).sum() + (r > high).sum()) for side, answers in sides.items()
            },
            "single_rank": int((low == high).sum()),
            "mean_width": float(np.mean(high - low + 1)),
            "widest": int((high - low + 1).max()),
        },
        "unequal": [
            {"float64": every[place].rank} | _describe_place(sides, place, every[place])
            for place in np.flatnonzero(differs).tolist()
        ],
    }


def main() -> None:
    """Print the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("folder", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--float64", action="store_true")
    given = vars(parser.parse_args())
    lines = given.pop("texts").read_text(encoding="utf-8").splitlines()
    found = compare(given.pop("url"), given.pop("folder"), [json.loads(line)["text"] for line in lines], **given)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
