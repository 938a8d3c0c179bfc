"""Designs: how many people are audited against how many controls, with how many records each, and what differs.

Nobody in these worlds was in the target's training set, but in designs that say so (`inside`): whatever an audit finds
is a false positive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from people import PERIOD, select_period
from stored import StoredModel, change_logprobs
from trainings import Trained

from recollect.corpora.corpus import Corpus
from recollect.corpora.members import Members
from recollect.corpora.record import Record
from recollect.signals.evidence import AUDITED, CONTROLS

SHORT = 8
"""Words that a short text has at most."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """Who is compared with whom."""

    name: str
    title: str
    """As the table says it."""
    exchangeable: bool = True
    """Whether the audited are like the controls in everything: then a guard has nothing to object to."""
    audited: int = 20
    """People."""
    records: float = 1.0
    """Of each audited person: a share of all they wrote, or so many if it is above 1. One record is 0."""
    controls: int = 99
    """People."""
    control_records: float = 1.0
    texts: Literal["any", "short"] = "any"
    """Which records of the audited people."""
    period: Literal["any", "another"] = "any"
    """Whether the controls wrote in another period than the audited and the target's members."""
    timed: bool = False
    """Whether the times of records are given."""
    scores: Literal["as they are", "heavy tails", "ties"] = "as they are"
    """What is done to the stored log-probabilities."""
    known: bool = False
    """Whether half of the audited are said to be members and half not to be, though none is."""
    inside: float = 0.0
    """The share of the audited who are in the training set: only for the coverage of intervals."""


DESIGNS = {
    each.name: each
    for each in (
        Design(name="equal", title="equal: 20 people against 99, all records"),
        Design(name="one", title="1 person against 99", audited=1),
        Design(name="three", title="3 people against 99", audited=3),
        Design(name="19-controls", title="1 person against 19", audited=1, controls=19),
        Design(name="few-controls", title="20 people against 19", controls=19),
        Design(name="199-controls", title="1 person against 199", audited=1, controls=199),
        Design(name="1000-controls", title="20 people against 900", controls=900),
        Design(name="1-record", title="1 record each against all", records=0, controls=199, exchangeable=False),
        Design(name="2-records", title="2 records each against all", records=2, controls=199, exchangeable=False),
        Design(name="5-records", title="5 records each against all", records=5, controls=199, exchangeable=False),
        Design(
            name="one-1-record",
            title="1 person with 1 record against 199 with all",
            audited=1,
            records=0,
            controls=199,
            exchangeable=False,
        ),
        Design(
            name="one-2-records",
            title="1 person with 2 records against 199 with all",
            audited=1,
            records=2,
            controls=199,
            exchangeable=False,
        ),
        Design(
            name="one-5-records",
            title="1 person with 5 records against 199 with all",
            audited=1,
            records=5,
            controls=199,
            exchangeable=False,
        ),
        Design(
            name="half-controls",
            title="40 people with all records against 160 with half",
            audited=40,
            controls=160,
            control_records=0.5,
            exchangeable=False,
        ),
        Design(
            name="sixth-controls",
            title="40 people with all records against 160 with a sixth",
            audited=40,
            controls=160,
            control_records=1 / 6,
            exchangeable=False,
        ),
        Design(name="forty", title="equal: 40 people against 160, all records", audited=40, controls=160),
        Design(name="short", title="short texts against any", texts="short", records=5, exchangeable=False),
        Design(
            name="another-month",
            title="another period, times given",
            audited=40,
            controls=160,
            period="another",
            timed=True,
            exchangeable=False,
        ),
        Design(
            name="another-month-unknown",
            title="another period, times not given",
            audited=40,
            controls=160,
            period="another",
            exchangeable=False,
        ),
        Design(
            name="one-another-month",
            title="1 person of another period, times given",
            audited=1,
            period="another",
            timed=True,
            exchangeable=False,
        ),
        Design(
            name="one-another-month-unknown",
            title="1 person of another period, times not given",
            audited=1,
            period="another",
            exchangeable=False,
        ),
        Design(name="equal-timed", title="equal: 20 people against 99, times given", timed=True),
        Design(name="one-timed", title="1 person against 99, times given", audited=1, timed=True),
        Design(name="heavy-tails", title="equal, scores with heavy tails", scores="heavy tails"),
        Design(name="ties", title="equal, scores with ties", scores="ties"),
        *(
            Design(name=f"secrets-{n}", title=f"{n} secrets and {n} controls, none planted", audited=n, controls=n)
            for n in (1, 2, 5, 20, 50)
        ),
        Design(name="100-records", title="100 records against 80, each of another person", audited=100, controls=80),
        Design(name="100-people", title="equal: 100 people against 80, all records", audited=100, controls=80),
        Design(name="20-records", title="20 records against 80, each of another person", controls=80),
        Design(name="half-in", title="20 people against 80, half of them in", controls=80, inside=0.5),
        Design(name="all-in", title="20 people against 80, all of them in", controls=80, inside=1.0),
        Design(
            name="small",
            title="10 people against 39, 5 records each",
            audited=10,
            records=5,
            controls=39,
            control_records=5,
        ),
        Design(
            name="small-1-record",
            title="10 people with 1 record against 39 with 5",
            audited=10,
            records=0,
            controls=39,
            control_records=5,
            exchangeable=False,
        ),
        Design(name="known", title="said members against said non-members", audited=40, known=True),
    )
}


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """The corpora of one world, and models that may score differently in it."""

    corpora: Mapping[str, Corpus]
    members: Members | None = None
    change: Literal["as they are", "heavy tails", "ties"] = "as they are"
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Pools:
    """From whom audited people and controls are drawn: from the same people or, for removal, from different ones."""

    audited: Sequence[str]
    controls: Sequence[str] | None = None
    """None for those who are not audited."""


def draw_world(
    trained: Trained, design: Design, pools: Pools, rng: np.random.Generator, *, most: int | None = None
) -> World:
    """One world: audited people and controls, drawn at random from people whom the target never saw.

    Args:
        trained: The target and its people.
        design: Who is compared with whom.
        pools: From whom both are drawn.
        rng: The only source of chance.
        most: Records of each person, at most: 1 for audits by record.
    """
    audited, controls = _draw_people(trained, design, pools, rng)
    amount = min(trained.people.amount, most or trained.people.amount)
    amounts = [min(amount, _count_records(share, amount)) for share in (design.records, design.control_records)]
    sides = {}
    for role, chosen, count, texts in (
        (AUDITED, audited, amounts[0], design.texts),
        (CONTROLS, controls, amounts[1], "any"),
    ):
        records = [
            record for user in chosen for record in _draw_records(trained.people.records[user], count, texts, rng)
        ]
        sides[role] = Corpus.of([_strip_time(record, design.timed) for record in records], name=role)
    return World(
        corpora=sides,
        members=_say_members(audited) if design.known else None,
        change=design.scores,
        seed=int(rng.integers(2**31)),
    )


def change_model(model: StoredModel, world: World, users: Mapping[str, str]) -> StoredModel:
    """The model as this world has it: its log-probabilities may have heavy tails, or ties.

    Args:
        model: The stored model.
        world: The world.
        users: The user of each record, by digest.
    """
    answers = model.answers
    if world.change == "as they are" or answers.logprob is None:
        return model
    records = np.repeat(np.arange(len(answers)), np.diff(answers.offsets))
    if world.change == "ties":
        sums = np.bincount(records, weights=answers.logprob, minlength=len(answers))
        means = np.round(sums / np.maximum(np.diff(answers.offsets), 1))
        return change_logprobs(model, means[records], "ties")
    names = sorted(set(users.values()))
    drawn = np.random.default_rng(world.seed).pareto(1.2, size=len(names))
    factor = dict(zip(names, 1 / (1 + drawn), strict=True))
    scale = np.array([factor[users[record]] if record in users else 1.0 for record in answers.records])
    return change_logprobs(model, answers.logprob * scale[records], f"heavy-{world.seed}")


def _draw_people(
    trained: Trained, design: Design, pools: Pools, rng: np.random.Generator
) -> tuple[list[str], list[str]]:
    """The audited people, and the controls."""
    candidates, others = list(pools.audited), list(pools.audited if pools.controls is None else pools.controls)
    if design.period != "any":
        last = trained.number % 2 == 0
        candidates = select_period(trained.people, candidates, PERIOD, last=last)
        others = select_period(trained.people, others, 1 - PERIOD, last=not last)
    inside = round(design.inside * design.audited)
    members = trained.division.members
    audited = [members[i] for i in rng.permutation(len(members))[:inside]]
    audited += [candidates[i] for i in rng.permutation(len(candidates))[: design.audited - inside]]
    left = sorted(set(others).difference(audited))
    return audited, [left[i] for i in rng.permutation(len(left))[: design.controls]]


def _draw_records(records: Sequence[Record], amount: int, texts: str, rng: np.random.Generator) -> list[Record]:
    """Some records of one person: short ones if those are wanted, as far as there are any."""
    short = [record for record in records if len((record.text or "").split()) <= SHORT] if texts == "short" else []
    pool = short or list(records)
    return [pool[i] for i in sorted(rng.permutation(len(pool))[:amount].tolist())]


def _count_records(share: float, amount: int) -> int:
    """How many records of each person."""
    if share <= 1:
        return max(1, round(share * amount))
    return int(share)


def _strip_time(record: Record, timed: bool) -> Record:
    """The record without its time, where times are not given."""
    return record if timed or record.time is None else _get_untimed(record)


@lru_cache(maxsize=2**16)
def _get_untimed(record: Record) -> Record:
    """The same record without its time, made once, so that what is derived from it is derived once."""
    return replace(record, time=None)


def _say_members(users: Sequence[str]) -> Members:
    """What is said of the audited: that the first half are members, and the others are not."""
    half = len(users) // 2
    return Members(unit="user", members=frozenset(users[:half]), non_members=frozenset(users[half:]))
