"""What the worlds are drawn from: confidence scores of a target and eight calibration models, stored once per training.

Digits and X-rays are divided, spoilt and trained as in `reproductions/huang2021`. Texts are short comments, and their
models interpolated trigrams, which are real language models that train in a second and memorise as strongly as wanted.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path[:0] = [str(Path(__file__).parents[2] / "reproductions" / name) for name in ("huang2021", "")]

NEAREST = 3
TEXTS = {"strong": (0.5, 0.3), "mild": (0.03, 0.07), "weak": (0.005, 0.02)}
"""The weights of trigrams and bigrams: how strongly the language model memorises."""
Stored = dict[str, NDArray[Any]]


def score_images(data: Path, work: Path, part_name: str, training: int, quality: int) -> Stored:
    """The scores of one training and one calibration set, from the work folder where they are kept."""
    file = work / "scores" / f"{part_name}-{training}-{quality}.npz"
    if not file.exists():
        import tables
        from laboratory import Laboratory

        from recollect.models.loading.loader import load_model

        lab, part = Laboratory(data=data, work=work, threads=1), getattr(tables, part_name.upper())
        drawn, calibration = tables.divided(lab, part, training), tables.calibration_of(lab, part, training, quality)
        corpora = {"train": drawn.training, "fresh": drawn.fresh, "far": tables.far_images(lab, part, training)}
        corpora["controls"] = calibration
        folders, cohorts = lab.calibrated(part.trainer(), calibration, part.models)
        names = sorted(folders, key=lambda name: int(name.split("-")[-1]))
        models = [load_model(tables.target_of(lab, part, training)), *(load_model(str(folders[n])) for n in names)]
        ids = [record.id for record in calibration]
        stored: Stored = {"member": np.stack([np.isin(ids, list(cohorts.members(name))) for name in names], axis=1)}
        for name, corpus in corpora.items():
            stored[name] = np.stack([_measure(model, list(corpus)) for model in models], axis=1)
            stored[f"{name}_nearest"], stored[f"{name}_distance"] = _find_nearest(corpus, calibration)
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **stored)  # type: ignore[arg-type]
    with np.load(file) as kept:
        return dict(kept)


def score_texts(data: Path, work: Path, strength: str, training: int) -> Stored:
    """The scores of one training of trigrams."""
    file = work / "scores" / f"texts-{training}-{strength}.npz"
    if not file.exists():
        rng = np.random.default_rng(training)
        texts = _read_texts(data / "reddit_comments" / "comments.jsonl.gz")
        texts = [texts[i] for i in rng.permutation(len(texts))[:8000]]
        sides = {"train": texts[:1000], "controls": texts[1000:3000], "fresh": texts[3000:]}
        words = len({word for text in texts for word in text})
        member = np.zeros((2000, 8), dtype=np.bool_)
        for pair in range(4):
            member[rng.permutation(2000)[:1000], 2 * pair] = True
            member[:, 2 * pair + 1] = ~member[:, 2 * pair]
        taught = [sides["train"], *([sides["controls"][i] for i in np.flatnonzero(flags)] for flags in member.T)]
        models = [Trigrams(each, words, TEXTS[strength]) for each in taught]
        stored: Stored = {name: np.array([[m.score(t) for m in models] for t in side]) for name, side in sides.items()}
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, member=member, **stored)  # type: ignore[arg-type]
    with np.load(file) as kept:
        return dict(kept)


class Trigrams:
    """An interpolated trigram model."""

    def __init__(self, texts: Sequence[Sequence[str]], words: int, weights: tuple[float, float]) -> None:
        self.words, self.weights = words, weights
        self.counts: Counter[tuple[str, ...]] = Counter()
        for text in texts:
            padded = ["^", "^", *text, "$"]
            for i in range(2, len(padded)):
                three = tuple(padded[i - 2 : i + 1])
                self.counts.update([three, three[1:], three[2:], ("", *three[:2]), ("", three[1]), ()])

    def score(self, text: Sequence[str]) -> float:
        """The mean log-probability of a text's words and its end."""
        padded, found = ["^", "^", *text, "$"], []
        for i in range(2, len(padded)):
            three = tuple(padded[i - 2 : i + 1])
            single = (self.counts[three[2:]] + 0.5) / (self.counts[()] + 0.5 * self.words)
            double = self._divide(three[1:], ("", three[1]), single)
            triple = self._divide(three, ("", *three[:2]), double)
            heavy, light = self.weights
            value = heavy * triple + light * double + (1 - heavy - light) * single
            found.append(np.log(value))
        return float(np.mean(found))

    def _divide(self, gram: tuple[str, ...], history: tuple[str, ...], otherwise: float) -> float:
        """How often a history is followed by a word; what shorter histories say if it never occurred."""
        seen = self.counts[history]
        return self.counts[gram] / seen if seen else otherwise


def _read_texts(file: Path) -> list[list[str]]:
    """The words of short comments, each once."""
    with gzip.open(file, "rt") as lines:
        texts = dict.fromkeys(json.loads(line)["text"] for line in lines)
    return [re.findall(r"\w+|[^\w\s]", text.lower()) for text in texts if 30 <= len(text) <= 150]


def _measure(model: Any, records: list[Any]) -> NDArray[np.float64]:
    """The log-probability that a model gives each record's label."""
    from recollect.signals.loss import mean_logprob

    means = mean_logprob(model.answer(records))
    return np.array([means[record.digest] for record in records])


def _find_nearest(corpus: Any, calibration: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest controls of each record, other than itself, and how far they are."""
    from recollect.audits.removal.neighbours import find_neighbours

    found = find_neighbours(list(corpus), list(calibration), NEAREST)
    itself = corpus is calibration
    return (found.controls, found.distances[1]) if itself else (found.audited, found.distances[0])
