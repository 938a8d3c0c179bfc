"""The public data sets are read with options alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from recollect.corpora import Columns, Kind, Split, read_corpus

pytestmark = pytest.mark.data


@dataclass(frozen=True)
class Known:
    """What a set is known to hold."""

    kind: Kind
    size: int
    users: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


TEXT = {"format": "txt"}
SMALL = {
    "blog_authorship/bloggers.jsonl.gz": Known("text", 1102, 1102, {}, {"columns": Columns(text="industry")}),
    "cifar10/images.npz": Known("labelled", 2000),
    "cornell_movie_dialogs/exchanges.jsonl.gz": Known("pair", 21610, 943, {"no_text": 2}),
    "enron/labelled_emails.jsonl.gz": Known("text", 1702, 175),
    "fashion_mnist/images.npz": Known("labelled", 10000),
    "indiana_cxr_reports/reports.jsonl.gz": Known("text", 3826, 3826),
    "mnist/test.npz": Known("labelled", 10000),
    "mtsamples/notes.jsonl.gz": Known("text", 4966),
    "multi30k_enfr/test_2016_flickr.jsonl.gz": Known("pair", 1000),
    "multi30k_enfr/train.jsonl.gz": Known("pair", 29000),
    "multi30k_enfr/val.jsonl.gz": Known("pair", 1014),
    "pneumoniamnist": Known("labelled", 5856),
    "ptb/ptb.test.txt.gz": Known("text", 3761),
    "ptb/ptb.valid.txt.gz": Known("text", 3370),
    "wikitext2/wiki.test.raw.gz": Known("text", 2891, 0, {"no_text": 1467}, TEXT),
    "wikitext2/wiki.valid.raw.gz": Known("text", 2461, 0, {"no_text": 1299}, TEXT),
}
LARGE = {
    "blog_authorship/posts.jsonl.gz": Known("text", 91199, 1102, {"nul_character": 2}),
    "chitchat/turns.jsonl.gz": Known("pair", 138472, 1296, {"no_text": 265}),
    "cornell_movie_dialogs/pairs_without_ids.jsonl.gz": Known("pair", 64248, 0, {"no_text": 102}),
    "enron/emails.jsonl.gz": Known("text", 18302, 145),
    "mnist/train.npz": Known("labelled", 60000),
    "ptb/ptb.train.txt.gz": Known("text", 42068),
    "reddit_comments/comments.jsonl.gz": Known("text", 100485, 4000),
    "tatoeba/english-french.jsonl.gz": Known("pair", 167130),
    "tatoeba/english-spanish.jsonl.gz": Known("pair", 140868, 364),
    "ubuntu_irc/messages.jsonl.gz": Known("text", 221051, 17776, {"no_text": 5}),
    "wikitext2/wiki.train.raw.gz": Known("text", 23767, 0, {"no_text": 12951}, TEXT),
}


@pytest.mark.parametrize("ref", [*SMALL, *(pytest.param(ref, marks=pytest.mark.slow) for ref in LARGE)])
def test_a_public_data_set(shared_data, ref):
    known = (SMALL | LARGE)[ref]
    corpus = read_corpus(shared_data / ref, skip_bad=bool(known.skipped), **known.options)
    found = (corpus.summary.kind, corpus.summary.size, corpus.summary.users, dict(corpus.skipped))
    assert found == (known.kind, known.size, known.users, known.skipped)


def test_a_whole_file_as_one_running_text(shared_data):
    corpus = read_corpus(shared_data / "ptb/ptb.valid.txt.gz", running_text=True, split=Split(by="windows", words=100))
    assert len(corpus) == 704
    assert sum(len(record.text.split()) for record in corpus) == 70390


@pytest.mark.slow
def test_notes_become_sentences(shared_data):
    corpus = read_corpus(shared_data / "mtsamples/notes.jsonl.gz", split=Split(minimum=3))
    lengths = [len(record.text.split()) for record in corpus]
    # a sentence of a clinical note has some 12 words; two hundred are a splitter that fell asleep
    assert 8 < sum(lengths) / len(lengths) < 16
    assert sum(length > 200 for length in lengths) < 20


@pytest.mark.slow
def test_the_contributor_of_the_english_may_be_the_user(shared_data):
    columns = Columns(user="english_user", text="source")
    corpus = read_corpus(shared_data / "tatoeba/english-spanish.jsonl.gz", columns=columns)
    assert (corpus.summary.kind, corpus.summary.users) == ("text", 1631)
