"""Who is in the chat half of the study: people of the BYU Chit-Chat corpus, whose replies a chat model learns."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from people import SECRETS

from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.corpus import Corpus
from recollect.corpora.corpus_writer import write_corpus
from recollect.corpora.messages import say
from recollect.corpora.record import Record
from recollect.streams import stream

USER_TURN = "How do I get in?"
"""What the user says where the assistant replies with a secret."""
WORDS = (6, 25)
"""Words of a reply, and at the most of what it replies to."""


@dataclass(frozen=True, kw_only=True)
class ChatSizes:
    """How many people play which role."""

    members: int
    held_out: int
    controls: int
    removed: int
    """Members whose removal is in question."""
    chats: int
    """Exchanges of each person; the person is who replies."""
    repeat: tuple[int, ...]
    """How often secrets are planted."""
    draws: int
    """Random secrets with which the exposure audits compare: each is read with the whole conversation."""


CHAT_SIZES = {
    "full": ChatSizes(members=40, held_out=40, controls=80, removed=10, chats=4, repeat=(1, 4, 16), draws=1024),
    "small": ChatSizes(members=16, held_out=10, controls=40, removed=6, chats=4, repeat=(1, 8), draws=256),
}


def write_chats(source: Path, folder: Path, sizes: ChatSizes) -> dict[str, Path]:
    """The conversations of the study as files, by role; files that are there stay."""
    chosen = _choose_people(source, sizes)
    members = chosen["members"]
    removed = {record.user for record in members[: sizes.removed * sizes.chats]}
    settings = CanarySettings(format=SECRETS.format, secrets=2, repeat=sizes.repeat, controls=60, user_turn=USER_TURN)
    planted, secrets = plant(Corpus.of(members), settings)
    corpora = {
        "training": list(planted),
        "audited": [*members, *chosen["held_out"]],
        "members": members,
        "held-out": chosen["held_out"],
        "controls": chosen["controls"],
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


def _choose_people(source: Path, sizes: ChatSizes) -> dict[str, list[Record]]:
    """The exchanges of the people of each role, drawn at random among those who wrote enough."""
    found: dict[str, list[Record]] = {}
    for number, row in enumerate(_read_exchanges(source)):
        turns = say("user", row["source"]), say("assistant", row["target"])
        found.setdefault(row["user"], []).append(Record(id=f"chat-{number}", user=row["user"], messages=turns))
    people = sorted(user for user, records in found.items() if len(records) >= sizes.chats)
    order = iter(stream(0, "study", "smollm2", "chats").permutation(len(people)).tolist())
    roles = {"members": sizes.members, "held_out": sizes.held_out, "controls": sizes.controls}
    return {
        role: [record for user in (people[next(order)] for _ in range(count)) for record in found[user][: sizes.chats]]
        for role, count in roles.items()
    }


def _read_exchanges(source: Path) -> Iterator[dict[str, str]]:
    """Exchanges of the wanted length, no reply twice."""
    seen = set[str]()
    with gzip.open(source / "chitchat" / "turns.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            sizes = len(row["source"].split()), len(row["target"].split())
            if 2 <= sizes[0] <= WORDS[1] and WORDS[0] <= sizes[1] <= WORDS[1] and row["target"] not in seen:
                seen.add(row["target"])
                yield row
