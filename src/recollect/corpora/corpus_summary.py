"""What one pass over a corpus finds out, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recollect.corpora.record import Kind, Record
from recollect.corpora.spill import Spill
from recollect.digests import frame, new_hasher


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What one pass over a corpus finds out."""

    size: int
    """Number of records."""
    users: int
    """Number of distinct users; 0 in a corpus without users."""
    kind: Kind
    digest: str
    """The address of ids, users and contents in their order."""


RECENT_USERS = 4096
"""How many users are remembered, so that those who write much are not hashed again and again."""
_NO_USER = b"\xff" * 8


def summarise_corpus(records: Iterable[Record]) -> Summary:
    """The summary of some records: size, users, kind and digest."""
    state, users, size = new_hasher(), Spill(), 0
    kind: Kind | None = None
    recent: set[str] = set()
    for record in records:
        user = record.user
        state.update(
            frame(record.id.encode("utf-8", "surrogatepass"))
            + (_NO_USER if user is None else frame(user.encode("utf-8", "surrogatepass")))
            + frame(record.to_bytes())
        )
        size += 1
        kind = kind or record.kind
        if user is not None and user not in recent:
            users.add(user)
            recent.add(user)
            if len(recent) == RECENT_USERS:
                recent.clear()
    return Summary(size=size, users=users.count_distinct(), kind=kind or "text", digest=state.hexdigest())
