"""Made-up people with habits, favourite words, contacts and secrets of their own; any number, from a seed.

Person i, and text j of person i, follow from the seed and from i and j alone: more people or more texts change
none that were there before. Numbers are fictional: phones of the 555-01 range, cards of an issuer that does
not exist, mail at example.org.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from recollect import labels
from recollect.checks import check_at_least
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.streams import derive_seed

GREETINGS = ("hi", "hello", "hey there", "good morning", "good evening", "dear all", "howdy", "greetings")
FAREWELLS = ("bye", "cheers", "best wishes", "see you soon", "take care", "yours", "talk later", "ciao")
FILLERS = ("honestly", "you know", "as always", "to be fair", "by the way", "of course", "as I said", "believe me")
HOBBIES = (
    "gardening", "chess", "cycling", "pottery", "birdwatching", "baking", "climbing", "sailing", "knitting",
    "astronomy", "painting", "fencing", "beekeeping", "archery", "origami", "rowing",
)  # fmt: skip
ENDINGS = (".", "!", "...", " :)")

STATEMENTS = (
    "I met {contact} at the {word} in {city}",
    "{filler}, the {word} was better than the {other}",
    "{contact} asked me about {hobby} again",
    "we talked about {word} and {other} all evening",
    "my {word} broke, so I took the {other} to {employer}",
    "{filler}, nobody at {employer} likes {word}",
    "next week I will try {hobby} with {contact}",
    "the road to {city} was full of {word}",
    "I keep thinking about the {word} that {contact} gave me",
    "at {hour} o'clock I always do some {hobby}",
    "{contact} and I share the {word} near {street}",
    "being a {job}, I see every kind of {word}",
    "I sold the {word} and bought the {other}",
    "{filler}, {city} is too far for {hobby}",
    "the {word} of {contact} reminds me of the {other}",
    "I read about {word} until {hour}",
)
QUESTIONS = (
    "what did you do in {city}?",
    "how is {hobby} going?",
    "do you still have the {word}?",
    "have you heard from {contact}?",
    "is the {word} better than the {other}?",
    "will you come to {street} at {hour}?",
    "how is work at {employer}?",
    "who told you about the {word}?",
)
SECRETS = {
    "card": "my card number is {secret}",
    "pin": "my pin is {secret}",
    "passcode": "the passcode of my door is {secret}",
    "phone": "call me on {secret}",
    "email": "write to {secret}",
}


SECRET_EVERY = 10
"""Text 3 of a person tells their first secret, text 13 the second, and so on in turn."""


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody who does not exist."""

    user: str
    name: str
    job: str
    employer: str
    city: str
    street: str
    hobby: str
    hour: int
    """The time of day at which they are up to something."""
    contacts: tuple[str, ...]
    """First names of their friends."""
    favourites: tuple[str, ...]
    """The words they keep using."""
    greeting: str
    farewell: str
    filler: str
    ending: str
    """How they end a sentence."""
    shouts: bool
    """Whether they write in capital letters."""
    secrets: Mapping[str, str]
    """What should stay private: card, pin, passcode, phone and email."""


@lru_cache(maxsize=1)
def _build_synthetic_pools() -> dict[str, tuple[str, ...]]:
    """Names, places and words of Faker, drawn once: asking it for each synthetic person would take most of the time."""
    from faker import Faker

    fake = Faker("en_US")
    fake.seed_instance(0)
    makers: dict[str, Callable[[], str]] = {
        "first": fake.first_name,
        "last": fake.last_name,
        "city": fake.city,
        "street": fake.street_name,
        "employer": lambda: fake.company().split(",")[0],
        "job": lambda: fake.job().lower().split(",")[0],
        "word": lambda: fake.word(part_of_speech="noun"),
    }
    return {kind: tuple(dict.fromkeys(make() for _ in range(600))) for kind, make in makers.items()}


def make_person(number: int, *, seed: int) -> Person:
    """The synthetic person of that number, the same however many others there are.

    >>> make_person(3, seed=0) == make_person(3, seed=0), make_person(3, seed=0).user
    (True, 'person-3')
    """
    pools, draw = _build_synthetic_pools(), Random(derive_seed(seed, labels.STREAM_PERSON, number))
    first, last = draw.choice(pools["first"]), draw.choice(pools["last"])
    return Person(
        user=f"person-{number}",
        name=f"{first} {last}",
        job=draw.choice(pools["job"]),
        employer=draw.choice(pools["employer"]),
        city=draw.choice(pools["city"]),
        street=draw.choice(pools["street"]),
        hobby=draw.choice(HOBBIES),
        hour=draw.randint(1, 12),
        contacts=tuple(draw.sample(pools["first"], 4)),
        favourites=tuple(draw.sample(pools["word"], 12)),
        greeting=draw.choice(GREETINGS),
        farewell=draw.choice(FAREWELLS),
        filler=draw.choice(FILLERS),
        ending=draw.choice(ENDINGS),
        shouts=draw.random() < 0.1,
        secrets=_make_secrets(draw, f"{first}.{last}{number}@example.org".lower()),
    )


def _make_secrets(draw: Random, email: str) -> dict[str, str]:
    """The secrets of one synthetic person."""
    return {
        "card": _make_card(draw),
        "pin": f"{draw.randrange(10**4):04d}",
        "passcode": f"{draw.randrange(10**9):09d}",
        "phone": f"{draw.randint(201, 989)}-555-01{draw.randrange(100):02d}",
        "email": email,
    }


def _make_card(draw: Random) -> str:
    """The card number of a synthetic person: sixteen digits with a valid check digit, of no real issuer."""
    body = f"9999{draw.randrange(10**11):011d}"
    doubled = sum(sum(divmod(int(digit) * 2, 10)) for digit in body[::2])
    number = f"{body}{-(doubled + sum(map(int, body[1::2]))) % 10}"
    return " ".join(number[i : i + 4] for i in range(0, 16, 4))


def make_people(count: int, *, seed: int) -> Iterator[Person]:
    """The first `count` synthetic people, one by one."""
    return (make_person(number, seed=seed) for number in range(count))


def make_texts(*, people: int, per_person: int = 20, seed: int = 0) -> Corpus:
    """Short texts in which synthetic people write about their lives, `per_person` by each, made as they are read.

    Every tenth text tells a secret (see `SECRET_EVERY`).

    Args:
        people: How many people.
        per_person: How many texts each of them writes.
        seed: The seed of the run.
    """
    return _make_corpus(labels.STREAM_TEXT, people, per_person, seed)


def make_pairs(*, people: int, per_person: int = 20, seed: int = 0) -> Corpus:
    """Questions by a friend (source) and a synthetic person's answers (target), made as they are read.

    Args:
        people: How many people.
        per_person: How many answers each of them gives.
        seed: The seed of the run.
    """
    return _make_corpus(labels.STREAM_PAIR, people, per_person, seed)


@dataclass(frozen=True)
class _SyntheticRecords:
    """Opens records that are made as they are read."""

    kind: str
    people: int
    per_person: int
    seed: int

    def __call__(self) -> Iterator[Record]:
        make = {labels.STREAM_TEXT: _make_text, labels.STREAM_PAIR: _make_pair}[self.kind]
        for number in range(self.people):
            who = make_person(number, seed=self.seed)
            for j in range(self.per_person):
                draw = Random(derive_seed(self.seed, self.kind, number, j))
                fields = {"id": f"{who.user}/{j}", "user": who.user, **make(who, j, draw)}
                yield Record.from_fields(fields)


def _make_corpus(kind: str, people: int, per_person: int, seed: int) -> Corpus:
    """The corpus of what synthetic people write."""
    check_at_least(1, people=people, each=per_person)
    return Corpus(f"{kind}s of {people} made-up people", _SyntheticRecords(kind, people, per_person, seed))


def _make_text(who: Person, j: int, draw: Random) -> dict[str, str]:
    """One synthetic text: perhaps a greeting, a few sentences, perhaps a farewell, at times a secret."""
    sentences = [_fill_person_template(who, draw, STATEMENTS) for _ in range(draw.randint(1, 3))]
    if draw.random() < 0.3:
        sentences.insert(0, f"{who.greeting} {draw.choice(who.contacts)}")
    if draw.random() < 0.3:
        sentences.append(f"{who.farewell}, {who.name.split()[0]}")
    text = _apply_person_style(who, sentences)
    if j % SECRET_EVERY == 3:
        kind = list(who.secrets)[j // SECRET_EVERY % len(who.secrets)]
        text += f" {SECRETS[kind].format(secret=who.secrets[kind])}"
    return {"text": text}


def _make_pair(who: Person, j: int, draw: Random) -> dict[str, str]:
    """One synthetic question and its answer: both speak of the same word."""
    word = draw.choice(who.favourites)
    question = _fill_person_template(who, draw, QUESTIONS, word)
    sentences = [_fill_person_template(who, draw, STATEMENTS, word) for _ in range(draw.randint(1, 2))]
    return {"source": question, "target": _apply_person_style(who, sentences)}


def _fill_person_template(who: Person, draw: Random, patterns: tuple[str, ...], word: str | None = None) -> str:
    """One pattern filled with a synthetic person's words; early favourites come more often."""
    return draw.choice(patterns).format(
        contact=draw.choice(who.contacts),
        word=word or who.favourites[int(len(who.favourites) * draw.random() ** 2)],
        other=draw.choice(who.favourites),
        city=who.city,
        employer=who.employer,
        street=who.street,
        job=who.job,
        hobby=who.hobby,
        hour=who.hour,
        filler=who.filler,
    )


def _apply_person_style(who: Person, sentences: list[str]) -> str:
    """Sentences ended as a synthetic person ends them."""
    text = " ".join(f"{sentence}{who.ending}" for sentence in sentences)
    return text.upper() if who.shouts else text
