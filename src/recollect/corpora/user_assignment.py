"""Artificial users, for a corpus that has none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recollect import labels
from recollect.checks import check_at_least
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import CorpusError, NotEnoughData
from recollect.streams import derive_seed


def assign_artificial_users(corpus: Corpus, *, users: int, seed: int) -> Corpus:
    """The same records, each given to one of `users` synthetic users at random.

    Song and Shmatikov 2019, section 4.1, "cross-domain reference datasets": a corpus without users is split
    into random subsets, each an artificial user. Here a record's user follows from the seed and the record's id
    alone, so nothing is held in memory and the order of the records does not matter; the subsets' sizes vary as
    those of random draws do.

    Args:
        corpus: A corpus without users.
        users: How many users, at most a tenth of the records, lest some get none.
        seed: The seed of the run.
    """
    check_at_least(1, users=users)
    if corpus.summary.users:
        raise CorpusError(
            f"{corpus.name} has users of its own.",
            do="Use them, or read it without (Columns(user='')).",
            code="has_users",
        )
    if users * 10 > len(corpus):
        raise NotEnoughData(
            f"{users:,} artificial users need at least {users * 10:,} records, and {corpus.name} has {len(corpus):,}.",
            do=f"Request at most {len(corpus) // 10:,} users.",
            code="too_few_records",
        )
    return Corpus(f"{corpus.name} ({users} artificial users)", _ArtificialUsers(corpus, users, seed), corpus.skipped)


@dataclass(frozen=True)
class _ArtificialUsers:
    """Opens the records of a corpus with their artificial users."""

    corpus: Corpus
    users: int
    seed: int

    def __call__(self) -> Iterator[Record]:
        for record in self.corpus:
            user = derive_seed(self.seed, labels.STREAM_ARTIFICIAL_USER, record.id) % self.users
            yield Record.from_fields({**record.__dict__, "user": f"artificial-{user}"})
