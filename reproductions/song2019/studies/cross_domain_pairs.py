"""Table 3, cross domain, of translation and dialogue: the shadows read pairs of another kind.

The paper takes Europarl for talks and Ubuntu's support chats for films. Ours: sentences of Tatoeba, and chats of two
people who were asked to talk (BYU Chit-Chat). Both are given to artificial users, as in the paper's section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import CHARACTERS, EXCHANGES, MORE_TALKS, PAIRS, Laboratory, People, Scene, at_most, in_random_order
from printed import CROSS_DOMAIN, Printed

from recollect.corpora import read_corpus
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.corpora.user_assignment import assign_artificial_users
from recollect.streams import stream

SHADOWS = 4
SHORTEST = 40
"""Characters of a sentence of Tatoeba at least: most have fewer, and those of talks have more."""
LONGEST = 200
"""Characters of a turn of a chat at most."""
SENTENCES, TURNS = 4, 20
"""Of each artificial user: as many as a talk has, and about as many exchanges as a film character."""


def study(lab: Laboratory) -> Iterator[Outcome]:
    found = Comparison(lab, "cross_domain_pairs")
    title = "Table 3: shadows from another domain, translation and dialogue"
    scale = (
        f"{lab.pairs_scale} {SHADOWS} shadows, of Tatoeba's sentences (paper: Europarl) and of Chit-Chat's dialogues "
        "(paper: Ubuntu's), given to artificial users."
    )
    for name in PAIRS:
        scene = cache(partial(elsewhere, lab, name))
        for k, printed in CROSS_DOMAIN[name].items():
            found.add(f"{name}, top-{k}", scene, printed, top_k=k)
            yield found.outcome(title, scale)
        found.add(f"{name}, all words", scene, Printed())  # the paper has no such row
        yield found.outcome(title, scale)


def elsewhere(lab: Laboratory, name: str) -> Scene:
    """The target of a task with shadows of another domain."""
    task = lab.pair(name)
    other, members = (sentences(lab), MORE_TALKS) if name == "translation" else (chats(lab), CHARACTERS)
    people = People(
        members=task.people.members,
        audited=task.people.audited,
        training=other.select_users(in_random_order(other)[: 2 * members], name="shadow users"),
        controls=other,
    )
    return lab.surrounded(lab.target(task), people, [task.recipe] * SHADOWS)


def sentences(lab: Laboratory) -> Corpus:
    """English and French sentences of artificial users: those who train shadows, and half as many who calibrate."""
    whole = read_corpus(lab.file("tatoeba/english-french.jsonl.gz"), skip_bad=True)
    return dealt(whole, lambda record: len(str(record.source)) >= SHORTEST, 3 * MORE_TALKS, SENTENCES)


def chats(lab: Laboratory) -> Corpus:
    """Turns of chats, each with the one before."""
    whole = read_corpus(lab.file("chitchat/turns.jsonl.gz"), skip_bad=True)
    return dealt(whole, lambda record: len(str(record.target)) <= LONGEST, 2 * CHARACTERS + 150, min(TURNS, EXCHANGES))


def dealt(corpus: Corpus, fits, users: int, texts: int) -> Corpus:
    """Pairs drawn at random and given to so many artificial users, each of whom keeps so many."""
    pairs = [replace(record, user=None) for record in corpus if fits(record)]
    chosen = stream(0, "cross domain", corpus.name.rpartition("/")[2]).permutation(len(pairs))
    wanted = int(users * max(10, texts) * 1.6)
    drawn = [Record(id=f"{i:06d}", source=pairs[i].source, target=pairs[i].target) for i in chosen[:wanted]]
    given = assign_artificial_users(Corpus.of(drawn, name="another domain"), users=users, seed=0)
    return at_most(given, texts, least=texts)
