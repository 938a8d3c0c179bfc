"""Who is in the study: Reddit users whose comments train the models, held-out users, and planted secrets."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.corpus import Corpus
from recollect.corpora.corpus_writer import write_corpus
from recollect.corpora.record import Record
from recollect.streams import stream

SECRETS = CanarySettings(format="my door code is {digits:6}", secrets=2, repeat=(1, 4, 16), controls=100)
WORDS = (8, 30)
"""Words of a comment."""
REMOVED = 10
"""Members whose removal is in question."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How many users play which role."""

    members: int
    """Their comments train the target."""
    held_out: int
    """Audited like members, and in no training set."""
    controls: int
    """Known not to be in the training set; half of them train the shadow models."""
    texts: int
    """Comments of each user, about 27 tokens each."""
    draws: int
    """Random secrets with which the exposure audits compare."""
    steps: int
    """Forward steps that the exact count of a secret's rank may take."""
    folds: int
    """Models of the leakage audit, each trained without its share of the members."""


SIZES = {
    "full": Sizes(members=92, held_out=60, controls=200, texts=8, draws=4096, steps=100_000, folds=4),
    "small": Sizes(members=36, held_out=20, controls=100, texts=6, draws=1024, steps=4000, folds=2),
}


def write_corpora(source: Path, folder: Path, sizes: Sizes) -> dict[str, Path]:
    """The corpora of the study as files, by role; files that are there stay."""
    chosen = _choose_users(source, sizes)
    members, held_out, controls = chosen["members"], chosen["held_out"], chosen["controls"]
    removed = {record.user for record in members[: REMOVED * sizes.texts]}
    planted, secrets = plant(Corpus("members", lambda: iter(members)), SECRETS)
    corpora = {
        "training": list(planted),
        "members": members,
        "held-out": held_out,
        "audited": [*members, *held_out],
        "controls": controls,
        "removed": [record for record in members if record.user in removed],
        "kept": [record for record in planted if record.user not in removed],
    }
    paths = {role: folder / f"{role}.jsonl" for role in corpora}
    for role, path in paths.items():
        if not path.exists():
            write_corpus(iter(corpora[role]), path)
    secrets.save(folder / "training.canaries.json")
    ids = sorted({str(record.user) for record in members})
    (folder / "members.txt").write_text("\n".join(ids) + "\n", encoding="utf-8")
    return {**paths, "canaries": folder / "training.canaries.json", "members.txt": folder / "members.txt"}


def _choose_users(source: Path, sizes: Sizes) -> dict[str, list[Record]]:
    """The comments of the users of each role, drawn at random among those who wrote enough."""
    comments = _read_comments(source)
    users = sorted(user for user, texts in comments.items() if len(texts) >= sizes.texts)
    order = iter(stream(0, "study", "smollm2").permutation(len(users)).tolist())
    return {
        role: [
            Record(id=f"{user}/{i}", user=user, text=text)
            for user in (users[next(order)] for _ in range(count))
            for i, text in enumerate(comments[user][: sizes.texts])
        ]
        for role, count in (("members", sizes.members), ("held_out", sizes.held_out), ("controls", sizes.controls))
    }


def _read_comments(source: Path) -> dict[str, list[str]]:
    """The comments of middling length of each user, no text twice."""
    found: dict[str, list[str]] = {}
    seen = set[str]()
    for user, text in _iter_comments(source):
        if WORDS[0] <= len(text.split()) <= WORDS[1] and text.isascii() and text not in seen:
            seen.add(text)
            found.setdefault(user, []).append(text)
    return found


def _iter_comments(source: Path) -> Iterator[tuple[str, str]]:
    """User and text of each comment; white space collapsed."""
    with gzip.open(source / "reddit_comments" / "comments.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield row["user"], " ".join(row["text"].split())
