"""Data that is nobody's: synthetic people's texts, and scikit-learn's digits, divided into files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from recollect import labels
from recollect.corpora import synthetic
from recollect.corpora.corpus_writer import write_corpus
from recollect.corpora.partitions import draw_groups, list_units
from recollect.files import make_private_folder, write_atomically
from recollect.streams import stream

WRONG_LABEL_SHARE = 0.2
"""The share of digits that are labelled at random, as by somebody in a hurry: what only memory can know."""


def write_people(
    folder: Path, sizes: Mapping[str, int], *, each: int = 20, seed: int = 0
) -> dict[str, tuple[str, ...]]:
    """Write the texts of synthetic people into one file per group, and tell who is in which.

    Args:
        folder: Gets a `GROUP.jsonl` for each group.
        sizes: How many people each group has.
        each: How many texts each of them writes.
        seed: The seed of all of it.
    """
    texts = synthetic.make_texts(people=sum(sizes.values()), per_person=each, seed=seed)
    chosen = draw_groups(list_units(texts, "user"), sizes, seed=seed)
    for name, users in chosen.items():
        write_corpus(texts.select_users(users), folder / f"{name}.jsonl")
    return chosen


def write_digits(folder: Path, sizes: Mapping[str, int], *, seed: int = 0) -> None:
    """Write scikit-learn's pictures of digits, a fifth of them labelled at random, into one file per group.

    Args:
        folder: Gets a `GROUP.npz` for each group.
        sizes: How many of the 1,797 pictures each group has.
        seed: The seed of all of it.
    """
    from sklearn.datasets import load_digits

    data, rng = load_digits(), stream(seed, labels.STREAM_DIGITS)
    wrong, guessed = rng.random(len(data.target)) < WRONG_LABEL_SHARE, rng.integers(10, size=len(data.target))
    classes = np.where(wrong, guessed, data.target)
    chosen = draw_groups([f"{index:04d}" for index in range(len(classes))], sizes, seed=seed, name=labels.STREAM_DIGITS)
    for name, members in chosen.items():
        indices = np.array([int(member) for member in members])
        with write_atomically(make_private_folder(folder) / f"{name}.npz") as temporary, temporary.open("wb") as file:
            np.savez(file, x=(data.images[indices] / 16).astype(np.float32), y=classes[indices])
