"""The people of each set: real accounts of public corpora, and made-up people; and whose texts train which model."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from recollect.corpora.digit_images import draw_digit_images
from recollect.corpora.record import Record
from recollect.corpora.synthetic import make_texts
from recollect.streams import stream

TEXTS, IMAGES = ("reddit", "irc", "synthetic"), ("digits",)
"""Comments of Reddit accounts, messages of an IRC channel, and texts of synthetic people; digits that they draw."""
SETS = (*TEXTS, *IMAGES)
MEMBERS, REFERENCE_USERS, FLEET_USERS = 40, 40, 80
"""How many people train a target, a reference, and a fleet: each model of a fleet is trained on half of them."""
WORDS = (3, 50)
"""Only texts of so many words are taken."""
MAX_PEOPLE = 1200
"""Of each set."""
TARGETS, FLEETS = 5, 5
"""Of each set. Target t is served by reference and fleet t modulo `FLEETS`, so that removal's controls, who trained the
fleet, are others for every target. Sets with times have as many targets of one period."""
PERIOD = 1 / 3
"""The share of people who make up a period."""
NEAR = 240
"""So many people whom no model saw are scored by a fleet, too."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the texts of a set come from."""

    file: str = ""
    """Below the data folder; empty for made-up people."""
    time: str = ""
    """The column that says when a text was written."""
    amount: int
    """Records of each person."""


SOURCES = {
    "reddit": Source(file="reddit_comments/comments.jsonl.gz", time="time", amount=20),
    "irc": Source(file="ubuntu_irc/messages.jsonl.gz", time="day", amount=30),
    "synthetic": Source(amount=30),
    "digits": Source(amount=20),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """Everybody of one set, each with equally many records."""

    name: str
    amount: int
    records: dict[str, tuple[Record, ...]] = field(repr=False)
    """By user, in the order of time."""
    moments: dict[str, str] = field(repr=False)
    """When each person wrote the middle one of their records; empty for made-up people."""

    @property
    def users(self) -> tuple[str, ...]:
        """All users in ascending order."""
        return tuple(sorted(self.records))


@dataclass(frozen=True, kw_only=True)
class Division:
    """Whose texts each of a target's models is trained on; all others are held out from all of them."""

    members: tuple[str, ...]
    reference: tuple[str, ...]
    fleet: tuple[str, ...]
    unseen: tuple[str, ...]
    """In random order."""
    near: tuple[str, ...]
    """Those of them whom no target at all saw, and whom the fleet scores as well."""


def find_data(data: Path | None, name: str) -> bool:
    """Whether a set can be read here."""
    source = SOURCES[name]
    return not source.file or (data is not None and (data / source.file).is_file())


@lru_cache(maxsize=4)
def read_people(data: Path | None, name: str) -> People:
    """Everybody of a set who wrote enough.

    Args:
        data: The folder with the public corpora.
        name: One of `SETS`.
    """
    source = SOURCES[name]
    if name in IMAGES:
        return _draw_images(name, source.amount)
    texts: dict[str, dict[str, dict[str, Any]]] = {}
    for row in _iter_rows(data, source):
        if WORDS[0] <= len(row["text"].split()) <= WORDS[1]:
            texts.setdefault(row["user"], {}).setdefault(row["text"], row)
    enough = sorted(user for user, found in texts.items() if len(found) >= source.amount)
    order = stream(0, "nulls", name, "people").permutation(len(enough))[:MAX_PEOPLE]
    chosen = sorted(enough[i] for i in order)
    latest = {user: _select_latest(list(texts[user].values()), source) for user in chosen}
    return People(
        name=name,
        amount=source.amount,
        records={user: _build_records(user, rows, source) for user, rows in latest.items()},
        moments={user: str(rows[len(rows) // 2][source.time]) if source.time else "" for user, rows in latest.items()},
    )


def list_targets(name: str) -> range:
    """The numbers of a set's targets: where times are known, there are targets of one period, too."""
    return range(2 * TARGETS if SOURCES[name].time else TARGETS)


def divide(people: People, target: int, fleet: int) -> Division:
    """Whose texts the models of one target are trained on.

    Targets from `TARGETS` on were trained on people of one period: those with an even number on the third who wrote
    last, the others on the third who wrote first.

    Args:
        people: Everybody.
        target: The number of the target.
        fleet: The number of the fleet that serves it.
    """
    shuffled = _shuffle(people, people.users, "fleet", fleet)
    end = FLEET_USERS + REFERENCE_USERS
    rest = sorted(shuffled[end:])
    trained = {u for number in range(TARGETS) for u in _shuffle(people, rest, "target", number)[:MEMBERS]}
    near = tuple(user for user in _shuffle(people, rest, "near", fleet) if user not in trained)[:NEAR]
    order = _shuffle(people, rest, "target", target)
    allowed = set(rest) if target < TARGETS else _find_period(people, rest, target).difference(near)
    members = frozenset([user for user in order if user in allowed][:MEMBERS])
    return Division(
        members=tuple(sorted(members)),
        reference=tuple(sorted(shuffled[FLEET_USERS:end])),
        fleet=tuple(sorted(shuffled[:FLEET_USERS])),
        unseen=tuple(user for user in order if user not in members),
        near=near,
    )


def select_period(people: People, users: Sequence[str], share: float, *, last: bool) -> list[str]:
    """The share of some people who wrote last, or first."""
    ordered = sorted(users, key=lambda user: (people.moments[user], user))
    count = round(share * len(ordered))
    return ordered[len(ordered) - count :] if last else ordered[:count]


def _find_period(people: People, users: Sequence[str], target: int) -> set[str]:
    """The people of a target's period."""
    return set(select_period(people, users, PERIOD, last=target % 2 == 0))


def _shuffle(people: People, users: Sequence[str], name: str, number: int) -> list[str]:
    """Some users in the random order of a named stream."""
    return [users[i] for i in stream(0, "nulls", people.name, name, number).permutation(len(users))]


def _iter_rows(data: Path | None, source: Source) -> Iterator[dict[str, Any]]:
    """The rows of a set: user, text and perhaps a time."""
    if not source.file:
        for record in make_texts(people=MAX_PEOPLE, per_person=source.amount + 5, seed=0):
            yield {"user": record.user, "text": record.text}
        return
    with gzip.open(Path(data or ".") / source.file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _draw_images(name: str, amount: int) -> People:
    """Made-up people who draw digits."""
    records: dict[str, list[Record]] = {}
    for record in draw_digit_images(people=MAX_PEOPLE, per_person=amount):
        records.setdefault(record.owner, []).append(record)
    found = {user: tuple(drawn) for user, drawn in records.items()}
    return People(name=name, amount=amount, records=found, moments=dict.fromkeys(found, ""))


def _select_latest(rows: list[dict[str, Any]], source: Source) -> list[dict[str, Any]]:
    """A person's latest rows, in the order of time."""
    ordered = sorted(rows, key=lambda row: str(row[source.time])) if source.time else rows
    return ordered[-source.amount :]


def _build_records(user: str, rows: list[dict[str, Any]], source: Source) -> tuple[Record, ...]:
    """A person's records, with their times where records have any."""
    timed = bool(source.time) and "time" in {each.name for each in fields(Record)}
    return tuple(
        Record.from_fields(
            {"id": f"{user}/{i:02d}", "user": user, "text": row["text"]}
            | ({"time": _parse_time(row[source.time])} if timed else {})
        )
        for i, row in enumerate(rows)
    )


def _parse_time(value: Any) -> datetime:
    """Epoch seconds, or a day."""
    if isinstance(value, int):
        return datetime.fromtimestamp(value, tz=UTC)
    return datetime.fromisoformat(value).replace(tzinfo=UTC)
